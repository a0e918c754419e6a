"""A node of the version before ends an execution for which something is kept: nodes of this version see to the rest.

What the older node does is written by plain statements: it knows nothing of what is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from holdfast import Context, Engine, Message, event, workflow
from holdfast.core.closing import find_next_run
from tests.eventually import eventually
from tests.store.postgres.watching import Watch

CLOSE: Final = "UPDATE executions SET status = $2, closed_at = updated_at + 1 WHERE execution_id = $1 RETURNING closed_at"
FOLLOW: Final = (
    "INSERT INTO executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, "
    "sequence, created_at, updated_at, details, route) "
    "SELECT org, $2, workflow_id, workflow, code_version, queue, 'suspended', 1, 0, updated_at, updated_at, details, route "
    "FROM executions WHERE execution_id = $1"
)


@event(on_target_terminated="dead_letter")
@dataclass
class Paid:
    by: str


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow(starts_on=Message("begin"))
async def begun(ctx: Context, value: str) -> str:
    return value


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[Engine]:
    """A node of this version, which soon notices what others leave in the outbox."""
    async with Engine(postgres_url, workflows=[wait, begun], events=[Paid], heartbeat=0.1, lease=60) as engine:
        yield engine


@pytest.fixture
async def older(postgres_url: str, engine: Engine) -> AsyncIterator[Watch]:
    """What a node of the version before writes, once the tables are there."""
    watch = await Watch.open(postgres_url)
    yield watch
    await watch.close()


async def start(engine: Engine, workflow_id: str) -> str:
    handle: Any = await engine.start(wait, workflow_id=workflow_id)
    return str(handle.execution_id)


async def test_M2_a_message_starts_its_workflow_when_an_older_node_ends_what_was_open(engine: Engine, older: Watch) -> None:
    first = await start(engine, "order-1")
    assert (await engine.send_message("begin", "order-1", "hello", ttl=3600)).kept

    await older.fetch(CLOSE, first, "completed")

    async def has_begun() -> bool:
        return (await engine.query_status("order-1")).workflow == "begun"

    await eventually(has_begun, "the workflow to be started by the message")
    assert await engine.handle("order-1").result() == "hello"


async def test_E1_an_event_is_a_dead_letter_when_an_older_node_ends_its_target(engine: Engine, older: Watch) -> None:
    first = await start(engine, "order-1")
    assert (await engine.send_event_to("order-1", Paid("ann"))).kept

    await older.fetch(CLOSE, first, "terminated")

    async def has_letter() -> bool:
        return len(await engine.dead_letters()) == 1

    await eventually(has_letter, "the event among the dead letters")
    assert await engine.pending_events(Paid) == []


async def test_C5_an_event_goes_to_the_next_run_that_an_older_node_begins(engine: Engine, older: Watch) -> None:
    first = await start(engine, "order-1")
    await engine.send_event_to("order-1", Paid("ann"))

    async with older.connection.transaction():
        [(closed_at,)] = await older.fetch(CLOSE, first, "continued")
        following = find_next_run(first, closed_at)
        await older.fetch(FOLLOW, first, following)

    async def is_carried() -> bool:
        return [one.target for one in await engine.pending_events(Paid)] == [following]

    await eventually(is_carried, "the event to be kept for the next run")
    assert await engine.dead_letters() == []
