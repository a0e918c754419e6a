"""BpmnError in activities and workflows: never retried, recorded by its code, and caught as what was raised."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import ActivityFailed, BpmnError, Context, Retry, activity, transaction, workflow
from holdfast.core import events, payloads
from holdfast.core.bpmn_errors import read_bpmn_error
from holdfast.core.failures import Failure
from holdfast.errors import WorkflowFailed
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.engine.support.histories import find_events

CALLS: list[str] = []
ALWAYS = Retry(initial=0.001)


@pytest.fixture(autouse=True)
def _forget() -> None:
    CALLS.clear()


@activity(retry=ALWAYS)
async def throw(code: str) -> None:
    CALLS.append(code)
    raise BpmnError(code, "no cover", {"limit": 5})


@activity(retry=Retry(initial=0.001, only=[ConnectionError, BpmnError]))
def throw_in_thread(code: str) -> None:
    CALLS.append(code)
    raise BpmnError(code, "no cover", {"limit": 5})


def read(failure: Failure) -> tuple[str, str, Any]:
    thrown = read_bpmn_error(failure)
    assert thrown is not None
    return thrown.code, thrown.message, payloads.show_value(thrown.variables)


@pytest.mark.parametrize("thrown", [throw, throw_in_thread, process_activities.throw_elsewhere])
async def test_thrown_error_ends_the_activity_at_once_and_is_caught_as_it_was(open_engine: OpenEngine, thrown: Any) -> None:
    @workflow
    async def order(ctx: Context) -> list[Any]:
        try:
            await ctx.run(thrown, "declined")
        except BpmnError as error:
            return [error.code, error.variables, error.__class__.__name__, getattr(error, "attempt", 0)]
        return []

    engine = await open_engine(order, thrown)
    handle = await engine.start(order)

    assert await handle.result() == ["declined", {"limit": 5}, "ActivityFailed", 1]
    assert len(CALLS) == (thrown is not process_activities.throw_elsewhere)
    [failed] = await find_events(engine, handle.workflow_id, events.ActivityFailed)
    message = "in a process" if thrown is process_activities.throw_elsewhere else "no cover"
    assert read(failed.failure) == ("declined", message, {"limit": 5})


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
async def test_thrown_error_of_a_transaction_commits_nothing(open_engine: OpenEngine, url: str) -> None:
    def write(connection: Any, code: str) -> None:
        connection.execute("CREATE TABLE mine (a)")
        raise BpmnError(code)

    async def write_awaited(connection: Any, code: str) -> None:
        await connection.execute("CREATE TABLE mine (a int)")
        raise BpmnError(code)

    note = transaction(name="note", retry=ALWAYS)(write if url.startswith("sqlite") else write_awaited)

    @workflow
    async def order(ctx: Context) -> list[str]:
        codes = []
        for code in ("first", "second"):  # the table is not there the second time
            try:
                await ctx.transaction(note, code)
            except BpmnError as error:
                codes.append(error.code)
        return codes

    engine = await open_engine(order, note)

    assert await (await engine.start(order)).result() == ["first", "second"]


async def test_P3_child_that_throws_fails_with_the_error(open_engine: OpenEngine) -> None:
    @workflow
    async def thrower(ctx: Context, how: str) -> None:
        if how == "activity":
            await ctx.run(throw, "declined")
        raise BpmnError("declined", "no cover", {"limit": 5})

    @workflow
    async def parent(ctx: Context, how: str) -> list[Any]:
        try:
            await ctx.run_child(thrower, how)
        except BpmnError as error:
            return [error.code, error.variables, error.__class__.__name__]
        return []

    engine = await open_engine(thrower, parent, throw)

    for how in ("activity", "own"):
        handle = await engine.start(parent, how)
        assert await handle.result() == ["declined", {"limit": 5}, "ChildWorkflowFailed"]
        [failed] = await find_events(engine, handle.workflow_id, events.ChildFailed)
        assert read(failed.failure) == ("declined", "no cover", {"limit": 5})


async def test_caller_of_a_workflow_that_throws_gets_the_error(open_engine: OpenEngine) -> None:
    @workflow
    async def thrower(ctx: Context) -> None:
        raise BpmnError("declined", variables={"limit": 5})

    engine = await open_engine(thrower)

    with pytest.raises(BpmnError) as raised:
        await (await engine.start(thrower)).result()
    assert (raised.value.code, raised.value.variables) == ("declined", {"limit": 5})
    assert isinstance(raised.value, WorkflowFailed)


async def test_thrown_error_is_no_trouble_for_the_log(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        try:
            await ctx.run(throw, "declined")
        except BpmnError as error:
            return error.code
        return ""

    engine = await open_engine(order, throw)

    assert await (await engine.start(order)).result() == "declined"
    assert caplog.text == ""


async def test_error_with_variables_that_json_cannot_hold_fails_clearly(open_engine: OpenEngine) -> None:
    @activity(retry=ALWAYS)
    async def careless() -> None:
        raise BpmnError("declined", variables={"socket": object()})

    @workflow
    async def order(ctx: Context) -> str:
        try:
            await ctx.run(careless)
        except ActivityFailed as error:
            return "thrown" if isinstance(error, BpmnError) else error.message
        return ""

    engine = await open_engine(order, careless)

    assert "the variables of BpmnError('declined')" in await (await engine.start(order)).result()
