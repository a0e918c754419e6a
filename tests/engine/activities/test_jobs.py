"""Jobs: activities that tasks of processes ask for. Arguments by name, the details of the task, and waiting for code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from holdfast import ActivityFailed, ActivityTimedOut, Context, Engine, Retry, activity, activity_info, transaction, workflow
from holdfast.core import codec
from holdfast.core.options import ActivityOptions, JobDetails
from holdfast.engine.pending import ActivityState
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.held_activities import Door
from tests.engine.support.jobs import run_job
from tests.eventually import eventually

DOOR = Door()
VARIABLES: dict[str, Any] = {"amount": 5, "card": "visa", "order": {"id": 7}}
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _door() -> Iterator[None]:
    RAN.clear()
    DOOR.begin_anew()
    yield
    DOOR.open()


@workflow
async def process(ctx: Context, name: str) -> Any:
    return await run_job(ctx, name, VARIABLES)


@workflow
async def impatient(ctx: Context, name: str) -> str:
    try:
        await run_job(ctx, name, VARIABLES, schedule_to_start=60)
    except ActivityTimedOut as error:
        return error.type
    return "done"


@activity
async def charge(amount: int, card: str, note: str = "none") -> list[Any]:
    RAN.append(amount)
    return [amount, card, note]


@activity
def charge_in_thread(card: str, *, amount: int) -> list[Any]:
    return [amount, card]


@activity
async def take_all(amount: int, **variables: Any) -> list[Any]:
    return [amount, variables]


def write_sync(_connection: Any, amount: int) -> int:
    return amount


async def write_async(_connection: Any, amount: int) -> int:
    return amount


ON_ITS_OWN = pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
"""Stores that one engine has to itself: there nobody else can come who has an activity."""


# --- arguments ---


@pytest.mark.parametrize(
    ("taken", "result"),
    [
        (charge, [5, "visa", "none"]),
        (charge_in_thread, [5, "visa"]),
        (take_all, [5, {"card": "visa", "order": {"id": 7}}]),
        (process_activities.charge_elsewhere, ["visa", 5]),
        (process_activities.take_all_elsewhere, {"amount": 5, "card": "visa", "order": {"id": 7}}),
    ],
)
async def test_job_takes_the_variables_that_it_has_parameters_for(open_engine: OpenEngine, taken: Any, result: Any) -> None:
    engine = await open_engine(process, taken)

    assert await (await engine.start(process, taken.name)).result() == result


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
async def test_transaction_does_a_job(open_engine: OpenEngine, url: str) -> None:
    write = transaction(name="write")(write_sync if url.startswith("sqlite") else write_async)
    engine = await open_engine(process, write)

    assert await (await engine.start(process, "write")).result() == 5


async def test_activity_of_code_may_take_extra_keywords_too(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> Any:
        return [await ctx.run(take_all, 5, vip=True), await ctx.run("take_all", amount=1, card="visa")]

    engine = await open_engine(order, take_all)

    assert await (await engine.start(order)).result() == [[5, {"vip": True}], [1, {"card": "visa"}]]


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        (
            "missing",
            r"^Expected the job of activity 'missing' to find variables for \(total: int\), but 'total' is missing ",
        ),
        ("mistyped", r"^Expected parameter 'card' of activity 'mistyped' to be int"),
    ],
)
async def test_job_whose_variables_do_not_fit_fails_at_once(open_engine: OpenEngine, taken: str, message: str) -> None:
    @activity
    async def missing(total: int) -> None:
        raise AssertionError(total)

    @activity
    async def mistyped(card: int) -> None:
        raise AssertionError(card)

    @workflow
    async def unlimited(ctx: Context) -> list[Any]:
        with pytest.raises(ActivityFailed, match="raised InvalidArguments") as raised:
            await run_job(ctx, taken, VARIABLES, retry=Retry())
        return [raised.value.message, raised.value.attempt]

    engine = await open_engine(unlimited, missing, mistyped)
    handle = await engine.start(unlimited)

    [found, attempt] = await handle.result()
    assert attempt == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(found)


# --- what it knows of its task ---


async def test_job_knows_its_task(open_engine: OpenEngine) -> None:
    @activity
    async def look() -> list[Any]:
        info = activity_info()
        return [info.element_id, info.element_name, dict(info.task_headers), info.workflow]

    @workflow
    async def order(ctx: Context) -> list[Any]:
        job = await run_job(ctx, "look", {}, {"template": "welcome"})
        return [job, await ctx.run(look.with_options(name="call"))]

    engine = await open_engine(order, look)

    assert await (await engine.start(order)).result() == [
        ["Task_1", "Charge card", {"template": "welcome"}, "order"],
        ["", "", {}, "order"],
    ]


def test_nodes_that_know_no_jobs_leave_them_alone() -> None:
    options = ActivityOptions(job=JobDetails("Task_1"))

    assert ActivityOptions.__struct_config__.forbid_unknown_fields
    assert JobDetails.__struct_config__.forbid_unknown_fields
    assert b'"job":{"element":"Task_1"}' in codec.encode(options)
    assert b"job" not in codec.encode(ActivityOptions())
    with pytest.raises(msgspec.ValidationError, match="unknown field `later`"):
        msgspec.json.decode(codec.encode(options).replace(b'"element"', b'"later":1,"element"'), type=ActivityOptions)


# --- a job that nobody has the activity for ---


async def test_job_without_an_activity_waits_visibly(open_engine: OpenEngine) -> None:
    engine = await open_engine(process)
    handle = await engine.start(process, "charge")

    await eventually(lambda: is_waiting(engine, handle.workflow_id))
    [found] = (await engine.query_status(handle.workflow_id)).pending.activities  # type: ignore[union-attr]
    assert (found.name, found.state, str(found.state)) == ("charge", ActivityState.NOT_OFFERED, "no node offers it")


@pytest.fixture
def open_next(open_engine: OpenEngine, url: str) -> OpenEngine:
    """Opens one engine after the other on the same database."""
    database = MemoryDatabase()

    async def open_next(*definitions: Any, **options: Any) -> TestEngine:
        store = MemoryStore(database, exclusive=True) if url.startswith("memory") else url
        return await open_engine(*definitions, store=store, **options)

    return open_next


async def test_waiting_job_starts_when_an_engine_has_its_activity(open_next: OpenEngine) -> None:
    first = await open_next(process)
    handle = await first.start(process, "charge")
    await eventually(lambda: is_waiting(first, handle.workflow_id))
    await first.shutdown()

    second = await open_next(process, charge)

    assert await second.handle(handle.workflow_id).result() == [5, "visa", "none"]
    assert RAN == [5]


@ON_ITS_OWN
async def test_job_that_was_taken_and_lost_with_its_process_waits_or_runs_again(open_next: OpenEngine) -> None:
    @activity(name="charge")
    async def held(amount: int) -> None:
        RAN.append(amount)
        await DOOR.wait()

    first = await open_next(process)
    handle = await first.start(process, "charge")
    await eventually(lambda: is_waiting(first, handle.workflow_id))
    await hooks.crash(first)
    second = await open_next(process, held)
    await eventually(lambda: RAN == [5])
    await hooks.crash(second)

    third = await open_next(process)
    await eventually(lambda: is_waiting(third, handle.workflow_id))
    await third.shutdown()
    fourth = await open_next(process, charge)

    assert await fourth.handle(handle.workflow_id).result() == [5, "visa", "none"]
    assert RAN == [5, 5]
    assert await fourth.store.check() == []


async def test_job_that_is_retried_without_its_activity_waits(open_next: OpenEngine) -> None:
    @activity(name="charge")
    async def failing() -> None:
        RAN.append("failed")
        raise ConnectionError

    @workflow
    async def retrying(ctx: Context) -> Any:
        return await run_job(ctx, "charge", VARIABLES, retry=Retry(initial=60))

    first = await open_next(retrying, failing)
    handle = await first.start(retrying)
    await eventually(lambda: RAN == ["failed"])
    await eventually(lambda: has_state(first, handle.workflow_id, ActivityState.RETRYING))
    await first.shutdown()

    second = await open_next(retrying)
    await second.clock.advance(seconds=70)
    await eventually(lambda: is_waiting(second, handle.workflow_id))
    await second.shutdown()
    third = await open_next(retrying, charge)

    assert await third.handle(handle.workflow_id).result() == [5, "visa", "none"]


async def test_P10_job_that_nobody_takes_in_time_times_out(open_engine: OpenEngine) -> None:
    engine = await open_engine(impatient)
    handle = await engine.start(impatient, "charge")
    await eventually(lambda: is_waiting(engine, handle.workflow_id))

    await engine.clock.advance(seconds=59)
    assert await is_waiting(engine, handle.workflow_id)
    await engine.clock.advance(seconds=2)

    assert await handle.result() == "schedule_to_start"
    assert await engine.store.check() == []


async def test_waiting_job_whose_workflow_ends_leaves_nothing(open_engine: OpenEngine) -> None:
    engine = await open_engine(process)
    handle = await engine.start(process, "charge")
    await eventually(lambda: is_waiting(engine, handle.workflow_id))

    await handle.terminate()

    assert handle.execution_id is not None
    assert await engine.store.list_offers(handle.execution_id) == []
    assert await engine.store.check() == []


@ON_ITS_OWN
async def test_waiting_job_is_warned_of(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    engine = await open_engine(process)
    await engine.start(process, "charge")

    await eventually(lambda: "no living node has activity 'charge'" in caplog.text)


@ON_ITS_OWN
async def test_activity_of_code_that_is_unknown_still_fails_at_once(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        with pytest.raises(ActivityFailed) as raised:
            await ctx.run("nowhere")
        return raised.value.type

    engine = await open_engine(order)

    assert await (await engine.start(order)).result() == "UnknownActivity"


async def test_job_goes_to_the_node_that_has_its_activity(cluster: Cluster) -> None:
    first = await cluster.open("a", process)
    handle = await first.start(process, "charge")
    await eventually(lambda: is_waiting(first, handle.workflow_id))

    await cluster.open("b", charge)

    assert await handle.result() == [5, "visa", "none"]


async def is_waiting(engine: Engine, workflow_id: str) -> bool:
    """Whether the only activity of an execution waits for a node that has it."""
    return await has_state(engine, workflow_id, ActivityState.NOT_OFFERED)


async def has_state(engine: Engine, workflow_id: str, state: ActivityState) -> bool:
    """Whether the only activity of an execution is in that state."""
    info = await engine.query_status(workflow_id)
    return info.pending is not None and [one.state for one in info.pending.activities] == [state]
