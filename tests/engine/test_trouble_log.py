"""What the log tells of executions and activities: one record each, after the commit, with ids and trace, and no values."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from holdfast import ActivityFailed, Context, Retry, activity, workflow
from holdfast.errors import WorkflowFailed
from holdfast.log_events import FIELDS, LogEvent
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import FaultAction, Faults, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.eventually import eventually

SECRET = "4111-1111"
RETRYING = Retry(initial=1, factor=1.0, jitter=0.0)


@activity(retry=Retry(max_attempts=2, initial=1, jitter=0.0))
async def charge(card: str) -> None:
    raise ValueError("the bank says no")


@activity(retry=RETRYING)
async def knock() -> None:
    raise ConnectionError("nobody is there")


@workflow
async def pay(ctx: Context, card: str) -> None:
    await ctx.run(charge, card)


@workflow
async def visit(ctx: Context) -> None:
    await ctx.run(knock)


@workflow
async def broken(ctx: Context) -> None:
    raise ValueError("broken")


@workflow
async def late(ctx: Context) -> None:
    await ctx.sleep(5)
    raise ValueError("broken")


@workflow
async def counted(ctx: Context) -> int:
    return await ctx.wait_for_signal("number", int)


@workflow(name="changing")
async def changing(ctx: Context) -> None:
    await ctx.sleep(5)
    await ctx.wait_for_signal("go")


@workflow(name="changing")
async def changed(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    await ctx.sleep(5)


def find(caplog: pytest.LogCaptureFixture, *events: LogEvent) -> list[logging.LogRecord]:
    """The records with one of these codes at WARNING or above."""
    return [one for one in caplog.records if getattr(one, "event", None) in events and one.levelno >= logging.WARNING]


def fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS if getattr(record, name) is not None}


def list_attempts(records: Sequence[logging.LogRecord]) -> list[int]:
    return [vars(one)["attempt"] for one in records]


async def test_O1_failed_execution_is_logged_once_with_ids_and_trace(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(broken, queues=["slow"])
    handle = await engine.start(broken, workflow_id="w", org="acme", queue="slow")
    with pytest.raises(WorkflowFailed):
        await handle.result()

    (record,) = find(caplog, LogEvent.EXECUTION_FAILED)
    assert (record.levelno, record.name) == (logging.ERROR, "holdfast.engine")
    trace = vars(record)["trace"]
    assert fields(record) == {
        "org": "acme",
        "workflow": "broken",
        "workflow_id": "w",
        "execution_id": handle.execution_id,
        "queue": "slow",
        "node": engine.node,
        "trace": trace,
    }
    assert "in broken" in trace
    assert "ValueError: broken" in record.getMessage()
    assert trace.splitlines()[-1] in record.getMessage()


async def test_O1_failure_of_a_group_tells_of_the_first_in_it(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    @workflow
    async def grouped(ctx: Context) -> None:
        raise ExceptionGroup("several", [ExceptionGroup("inner", [ValueError("the cause")]), KeyError("b")])

    told = (
        "ExceptionGroup: several (2 sub-exceptions); the first is ExceptionGroup: inner (1 sub-exception); "
        "the first is ValueError: the cause"
    )
    engine = await open_engine(grouped)
    handle = await engine.start(grouped)
    with pytest.raises(WorkflowFailed, match=re.escape(told)):
        await handle.result()

    assert any(told in record.getMessage() for record in caplog.records)


async def test_O1_failure_of_a_group_with_a_class_of_its_own_tells_of_the_first_in_it(open_engine: OpenEngine) -> None:
    class Declined(ExceptionGroup[Exception]):
        """A group of the user's own."""

    @workflow
    async def grouped(ctx: Context) -> None:
        raise Declined("all cards", [ValueError("the first card"), KeyError("b")])

    told = "Declined: all cards (2 sub-exceptions); the first is ValueError: the first card"
    engine = await open_engine(grouped)
    handle = await engine.start(grouped)
    with pytest.raises(WorkflowFailed, match=re.escape(told)):
        await handle.result()


async def test_O1_id_of_an_execution_that_has_no_other_is_told_once(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(broken)
    handle = await engine.start(broken)
    with pytest.raises(WorkflowFailed) as caught:
        await handle.result()

    (record,) = find(caplog, LogEvent.EXECUTION_FAILED)
    assert record.getMessage().startswith(f"execution '{handle.execution_id}' of workflow 'broken' failed")
    assert str(caught.value).count(str(handle.execution_id)) == 1


async def test_O1_activity_that_fails_for_good_is_logged_with_its_attempt_and_no_values(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    engine = await open_engine(pay, charge)
    handle = await engine.start(pay, SECRET, workflow_id="w")
    await engine.clock.advance(seconds=5)
    with pytest.raises(WorkflowFailed):
        await handle.result()
    await engine.restart()
    await engine.settle()

    (record,) = find(caplog, LogEvent.ACTIVITY_FAILED)
    found = fields(record)
    assert (found["activity"], found["attempt"], found["workflow"], found["workflow_id"]) == ("charge", 2, "pay", "w")
    assert "in charge" in found["trace"]
    assert record.name == "holdfast.activities"
    assert list_attempts(find(caplog, LogEvent.ACTIVITY_ATTEMPT_FAILED)) == [1]
    assert len(find(caplog, LogEvent.EXECUTION_FAILED)) == 1, "and a restart logs it no second time"
    assert SECRET not in "".join(str(vars(one)) for one in caplog.records if one.name.startswith("holdfast"))


async def test_O1_causes_are_logged_before_what_follows_from_them(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(pay, charge)
    handle = await engine.start(pay, SECRET, workflow_id="w")
    await engine.clock.advance(seconds=5)
    with pytest.raises(WorkflowFailed):
        await handle.result()

    events = [getattr(one, "event", None) for one in caplog.records if one.levelno >= logging.WARNING]
    assert events == [LogEvent.ACTIVITY_ATTEMPT_FAILED, LogEvent.ACTIVITY_FAILED, LogEvent.EXECUTION_FAILED]


@pytest.mark.parametrize("is_sync", [False, True])
async def test_O1_trace_of_an_activity_begins_with_its_own_code(open_engine: OpenEngine, is_sync: bool) -> None:
    def fetch() -> None:
        raise ValueError("gone")

    async def fetch_async() -> None:
        fetch()

    fetching = activity(name="fetching", retry=Retry(max_attempts=1))(fetch if is_sync else fetch_async)

    @workflow
    async def fetches(ctx: Context) -> str:
        try:
            return str(await ctx.run(fetching))
        except ActivityFailed as error:
            return error.trace

    engine = await open_engine(fetches, fetching)

    lines = (await (await engine.start(fetches)).result()).splitlines()

    assert [line.rpartition(".")[2] for line in lines] == (["fetch"] if is_sync else ["fetch_async", "fetch"])
    assert all(line.startswith(f"{__file__}:") for line in lines)


async def test_O1_retries_without_end_are_logged_ever_more_seldom(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(visit, knock)
    await engine.start(visit)
    await engine.clock.advance(seconds=45)

    warned = find(caplog, LogEvent.ACTIVITY_ATTEMPT_FAILED, LogEvent.ACTIVITY_RETRYING)
    assert list_attempts(warned) == [1, 5, 10, 20, 40]
    assert {vars(one)["event"] for one in warned[1:]} == {"activity_retrying"}
    assert "in knock" in vars(warned[-1])["trace"]
    assert "; 1 failure in " in warned[0].getMessage()
    assert ": 40 failures in " in warned[-1].getMessage()


@activity(retry=Retry(initial=900, factor=1.0, maximum=900, jitter=0.0))
async def knock_seldom() -> None:
    raise ConnectionError("nobody is there")


@workflow
async def visit_seldom(ctx: Context) -> None:
    await ctx.run(knock_seldom)


async def test_O1_retries_with_long_pauses_are_logged_before_the_fifth(caplog: pytest.LogCaptureFixture) -> None:
    async with TestEngine(workflows=[visit_seldom], activities=[knock_seldom], auto_advance=False) as engine:
        await engine.start(visit_seldom)
        await engine.clock.advance(minutes=16)

        assert list_attempts(find(caplog, LogEvent.ACTIVITY_RETRYING)) == [2]


async def test_O1_blocked_execution_is_logged_with_what_is_wrong(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(changing)
    handle = await engine.start(changing, workflow_id="w")
    await engine.settle()
    await engine.restart(workflows=[changed])
    await handle.signal("go")
    await engine.settle()

    (record,) = find(caplog, LogEvent.EXECUTION_BLOCKED)
    assert record.levelno == logging.ERROR
    assert (vars(record)["workflow_id"], vars(record)["execution_id"]) == ("w", handle.execution_id)
    assert "NonDeterminismError" in record.getMessage()
    assert ".." not in record.getMessage()
    assert record.getMessage().count("retry") == 1  # what to do is said once
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+", vars(record)["trace"])  # a line of the user's, and none of ours


async def test_O1_rejected_signal_is_logged_without_its_value(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(counted)
    handle = await engine.start(counted, workflow_id="w")
    await engine.settle()
    await handle.signal("number", SECRET)
    await engine.settle()

    (record,) = find(caplog, LogEvent.SIGNAL_REJECTED)
    assert (vars(record)["workflow_id"], vars(record)["workflow"]) == ("w", "counted")
    assert "a signal 'number' for execution 'w'" in record.getMessage()
    assert SECRET not in str(vars(record))


@workflow
async def careless(ctx: Context) -> None:
    await ctx.run("remember", SECRET)


@activity(name="remember")
async def remember(number: int) -> int:
    return number


async def test_O1_value_that_does_not_fit_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    async with TestEngine(workflows=[careless], activities=[remember], auto_advance=False) as engine:
        await engine.start(careless)
        await engine.settle()

    (record,) = find(caplog, LogEvent.ACTIVITY_ATTEMPT_FAILED, LogEvent.ACTIVITY_FAILED)
    assert "parameter 'number' of activity 'remember' to have another type" in record.getMessage()
    assert SECRET not in "".join(str(vars(one)) for one in caplog.records if one.name.startswith("holdfast"))


@pytest.mark.parametrize(
    ("policy", "event", "level"),
    [("keep", LogEvent.DEAD_LETTER, logging.ERROR), ("discard", LogEvent.DEAD_LETTER_DISCARDED, logging.WARNING)],
)
async def test_O1_what_cannot_be_handled_is_logged(
    policy: Literal["keep", "discard"], event: LogEvent, level: int, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    async with TestEngine(store, workflows=[counted], dead_letter_policy=policy) as engine:
        await engine.transaction(lambda _connection, work: work.signal("nobody", "number", SECRET))
        await engine.settle()

        (record,) = find(caplog, LogEvent.DEAD_LETTER, LogEvent.DEAD_LETTER_DISCARDED)
    assert (vars(record)["event"], record.levelno) == (event, level)
    assert (vars(record)["org"], vars(record)["workflow_id"], vars(record)["node"]) == ("default", "nobody", engine.node)
    assert SECRET not in str(vars(record))


async def test_O1_attempt_that_is_taken_over_is_logged_by_the_node_that_does(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    door = Door()

    @activity
    async def wait() -> None:
        await door.wait()

    @workflow
    async def waits(ctx: Context) -> None:
        await ctx.run(wait)

    a = await cluster.open("a", waits, wait, **MORTAL)
    await a.start(waits, workflow_id="w")
    await eventually(lambda: hooks.count_activities(a))
    b = await cluster.open("b", waits, wait, **MORTAL)
    await cluster.kill("a")
    await eventually(lambda: find(caplog, LogEvent.ACTIVITY_TAKEN_OVER))
    door.open()
    await b.handle("w").result()

    (record,) = find(caplog, LogEvent.ACTIVITY_TAKEN_OVER)
    found = fields(record)
    assert (found["node"], found["activity"], found["attempt"], found["workflow_id"]) == ("b", "wait", 1, "w")
    assert "ran on node a" in record.getMessage()
    assert [vars(one)["node"] for one in find(caplog, LogEvent.NODE_TAKEN_OVER)] == ["b"]


async def test_O1_turn_that_is_not_committed_is_logged_only_when_it_is(caplog: pytest.LogCaptureFixture) -> None:
    failing: list[Point] = []

    def fail_commits(point: str, _node: str) -> FaultAction:
        if failing and point == Point.COMMIT:
            failing.pop()
            assert not find(caplog, LogEvent.EXECUTION_FAILED)
            return FaultAction.FAIL
        return FaultAction.NONE

    store = MemoryStore(MemoryDatabase(), node="a", faults=Faults(fail_commits))
    async with TestEngine(store, workflows=[late], node="a") as engine:
        handle = await engine.start(late)
        await engine.settle()
        failing += [Point.COMMIT] * 2
        with pytest.raises(WorkflowFailed):
            await handle.result()

    assert not failing
    assert len(find(caplog, LogEvent.EXECUTION_FAILED)) == 1


async def test_handler_that_raises_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise OSError("the disk of the log is full")

    handler = Broken()
    logging.getLogger("holdfast").addHandler(handler)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    try:
        async with TestEngine(workflows=[broken, pay], activities=[charge]) as engine:
            for flow, args in ((broken, ()), (pay, ("1",)), (broken, ())):
                with pytest.raises(WorkflowFailed):
                    await (await engine.start(flow, *args)).result()
    finally:
        logging.getLogger("holdfast").removeHandler(handler)


async def test_ctx_logger_has_the_fields_of_the_engines_records(caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def says(ctx: Context) -> None:
        ctx.logger.warning("hello", extra={"order": 7})

    async with TestEngine(workflows=[says]) as engine:
        handle = await engine.start(says, workflow_id="w", org="acme")
        await handle.result()

    (record,) = [one for one in caplog.records if one.name == "holdfast.workflow.says"]
    assert fields(record) == {
        "org": "acme",
        "workflow": "says",
        "workflow_id": "w",
        "execution_id": handle.execution_id,
    }
    assert (vars(record)["event"], vars(record)["order"]) == (None, 7)
