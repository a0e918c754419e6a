"""Lists and counts of executions, and backlogs, as users ask for them."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.core.lifecycle import Status
from holdfast.engine.use_cases import searching
from holdfast.errors import HoldfastError, InvalidArguments, InvalidIdentifier, InvalidTime
from holdfast.testing import TestEngine


@workflow
async def order(ctx: Context, number: int) -> int:
    if number % 2:
        await ctx.wait_for_signal("go")
    return number


@activity(queue="elsewhere")
async def nobody_offers() -> None:
    """Is on no node."""


@workflow
async def waits_for_offer(ctx: Context) -> None:
    await ctx.run(nobody_offers)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    async with Engine(url, workflows=[order]) as engine:
        yield engine


async def fill(engine: Engine) -> None:
    for number in range(6):
        metadata = {"customer": "ann" if number < 4 else "bob", "number": str(number)}
        await engine.start(order, number, workflow_id=f"order-{number}", metadata=metadata)
        await asyncio.sleep(0.002)  # ids of one millisecond are in no order


async def test_executions_are_found_by_metadata_and_prefix(engine: Engine) -> None:
    await fill(engine)

    by_customer = await engine.list(metadata={"customer": "ann"})
    by_both = await engine.list(metadata={"customer": "ann", "number": "2"})
    by_prefix = await engine.list(workflow_id_prefix="order-", status="completed")

    assert [info.workflow_id for info in by_customer] == ["order-3", "order-2", "order-1", "order-0"]
    assert [info.metadata["number"] for info in by_both] == ["2"]
    assert [info.workflow_id for info in by_prefix] == ["order-4", "order-2", "order-0"]


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", "\\", 'a"b', "100%_", "naïve"])
async def test_executions_are_found_by_metadata_of_any_text(engine: Engine, value: str) -> None:
    await engine.start(order, 0, workflow_id="o", metadata={"text": value})
    await engine.start(order, 0, workflow_id="other", metadata={"text": "another"})

    assert [info.workflow_id for info in await engine.list(metadata={"text": value})] == ["o"]


async def test_executions_are_found_by_times(engine: Engine) -> None:
    await fill(engine)
    infos = {info.workflow_id: info for info in await engine.list()}
    second, fourth = infos["order-2"], infos["order-4"]

    created = await engine.list(created_after=second.created_at, created_before=fourth.created_at)
    closed = await engine.list(closed_after=second.closed_at, closed_before=fourth.closed_at)

    assert [info.workflow_id for info in created] == ["order-3", "order-2"]
    assert [info.workflow_id for info in closed] == ["order-2"]
    assert await engine.list(created_after=datetime.now(UTC) + timedelta(days=1)) == []


async def test_a_cursor_leads_through_all_pages(engine: Engine) -> None:
    await fill(engine)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await engine.list(limit=2, cursor=cursor)
        seen += [info.workflow_id for info in page]
        cursor = page.cursor
        await engine.start(order, 1)
        if cursor is None:
            break

    assert seen == [f"order-{number}" for number in range(5, -1, -1)]


async def test_counts_are_by_status(engine: Engine) -> None:
    await fill(engine)

    counts = await engine.count(metadata={"customer": "ann"})

    assert counts.by_status == {"suspended": 2, "completed": 2}
    assert (counts.total, counts.is_exact, str(counts)) == (4, True, "4")


@pytest.mark.parametrize("looked_at", [1, 3, 6, 100])
async def test_count_is_called_exact_only_if_nothing_was_left_out(
    engine: Engine, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_LOOKED_AT", looked_at)
    await fill(engine)

    for conditions, number in (({"workflow": "order"}, 6), ({"where": "NOT workflow_id = 'order-5'"}, 5)):
        counts = await engine.count(**conditions)  # type: ignore[arg-type]
        assert counts.total == number if counts.is_exact else counts.total < number
        assert counts.is_exact or (looked_at < 6 and str(counts).endswith("+"))


@pytest.mark.parametrize(
    ("conditions", "error", "message"),
    [
        ({"cursor": "x"}, InvalidArguments, r"Expected a cursor that a list returned, but it is 'x'"),
        ({"cursor": "h1.a", "before": "b"}, InvalidArguments, "both are given"),
        ({"limit": 0}, InvalidArguments, "between 1 and 10,000"),
        ({"limit": True}, InvalidArguments, "between 1 and 10,000"),
        ({"status": "gone"}, InvalidArguments, "to be among"),
        ({"status": 5}, InvalidArguments, "to be among"),
        ({"metadata": {"a": 1}}, InvalidArguments, "map text to text"),
        ({"metadata": {"a": "x" * 501}}, InvalidArguments, "no search finds them"),
        ({"created_after": datetime.now(UTC).replace(tzinfo=None)}, InvalidTime, "created_after to have a time zone"),
        ({"closed_before": 5}, InvalidTime, "closed_before to be a datetime"),
        ({"workflow_id_prefix": 5}, InvalidArguments, "to be text"),
    ],
)
async def test_conditions_are_checked(engine: Engine, conditions: Any, error: type[HoldfastError], message: str) -> None:
    with pytest.raises(error, match=message):
        await engine.list(**conditions)


async def test_a_backlog_tells_what_waits_in_each_queue(postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=[order, waits_for_offer], queues=["fast"]) as engine:
        await engine.start(waits_for_offer, queue="fast")
        await engine.start(order, 1, queue="fast")
        await engine.start(order, 1, workflow_id="order-1", queue="slow")

        async with asyncio.timeout(20):
            while not any(one.offered for one in await engine.backlog()):
                await asyncio.sleep(0.01)
        queues = {one.queue: one for one in await engine.backlog()}

    assert set(queues) == {"fast", "slow", "elsewhere"}
    assert (queues["fast"].org, sum(queues["fast"].open.values()), queues["fast"].is_exact) == ("default", 2, True)
    assert (queues["slow"].inbox, queues["slow"].oldest is not None) == (1, True)
    assert (queues["elsewhere"].offered, queues["elsewhere"].open) == (1, {})


@pytest.mark.parametrize("name", ["workflow", "workflow_id", "workflow_id_prefix", "parent_execution_id", "before"])
async def test_a_condition_that_is_no_text_is_refused(engine: Engine, name: str) -> None:
    conditions: dict[str, Any] = {name: {"a": 1}}

    with pytest.raises(InvalidArguments, match=f"Expected {name} to be text"):
        await engine.list(**conditions)


@pytest.mark.parametrize("text", ["\ud800", "a\x00"])
async def test_a_condition_that_no_database_can_hold_is_refused(engine: Engine, text: str) -> None:
    for name in ("workflow", "workflow_id", "workflow_id_prefix", "parent_execution_id", "before"):
        condition: Any = {name: text}
        with pytest.raises(InvalidArguments, match=name):
            await engine.list(**condition)
    for metadata in ({text: "x"}, {"x": text}):
        with pytest.raises(InvalidArguments, match="metadata"):
            await engine.count(metadata=metadata)
    with pytest.raises(InvalidIdentifier):
        await engine.dead_letters(org=text)


async def test_a_backlog_leaves_out_what_waits_for_blocked_executions() -> None:
    @workflow(name="changing")
    async def before(ctx: Context) -> None:
        await asyncio.gather(ctx.sleep(5), ctx.sleep(60), ctx.wait_for_signal("go"))

    @workflow(name="changing")
    async def after(ctx: Context) -> None:
        await ctx.wait_for_signal("go")

    async with TestEngine(workflows=[before], auto_advance=False) as engine:
        await engine.start(before, workflow_id="w")
        await engine.restart(workflows=[after])
        await engine.clock.advance(10)
        assert (await engine.query_status("w")).status is Status.BLOCKED
        await engine.signal_workflow("w", "go")
        await engine.clock.advance(3600)

        (queue,) = await engine.backlog()

    assert (queue.open, queue.due, queue.inbox, queue.oldest) == ({"blocked": 1}, 0, 0, None)


@pytest.mark.parametrize("order_by", ["closed", "closed desc", "state.n", "state.n desc", "created asc"])
async def test_a_cursor_whose_position_was_changed_is_refused(engine: Engine, order_by: str) -> None:
    await fill(engine)
    cursor = (await engine.list(order_by=order_by, limit=2)).cursor
    assert cursor is not None
    head = cursor.rpartition(".")[0]
    texts, numbers = ("text", "", "n6"), (5, 2**63, -(2**63) - 1, 2**70)
    refused: dict[str, tuple[str | int, ...]] = {
        "closed": (*texts, *numbers[1:]),
        "state.n": numbers,
        "created": (*texts, *numbers),
    }

    for value in (*refused[order_by.split(maxsplit=1)[0]], 1.5, True, "a\0b"):
        position = urlsafe_b64encode(msgspec.json.encode(["x", value])).decode()
        with pytest.raises(InvalidArguments, match="Expected a cursor that a list returned"):
            await engine.list(order_by=order_by, limit=2, cursor=f"{head}.{position}")
