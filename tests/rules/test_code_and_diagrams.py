"""Code and diagrams together: each calls the other, and messages, signals and errors pass between them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import BpmnError, Context, activity, workflow
from holdfast.errors import ChildWorkflowFailed
from tests.bpmn.support.diagrams import (
    boundary,
    call,
    catch,
    end,
    error,
    escalation,
    job,
    message,
    path,
    receive,
    script,
    signal,
    start,
    throw,
    write,
)
from tests.rules.spreads import shrink_spreads
from tests.rules.world import World


@workflow
async def add_tax(_ctx: Context, total: int) -> dict[str, Any]:
    """Takes one of the variables that a diagram hands over."""
    return {"gross": total * 2}


@workflow
async def refuse(_ctx: Context) -> None:
    raise BpmnError("E1", "no", {"why": "limit"})


@workflow
async def call_process(ctx: Context, total: int) -> Any:
    return await ctx.run_child("priced", {"total": total})


@workflow
async def catch_error_of_process(ctx: Context) -> str:
    try:
        await ctx.run_child("throwing", {})
    except BpmnError as caught:
        return f"caught {caught.code}, a child's: {isinstance(caught, ChildWorkflowFailed)}"
    return "nothing"


@workflow
async def tell_and_listen(ctx: Context) -> str:
    """Sends a message to a process, and waits for the signal that it throws."""
    waiting = ctx.wait_for_broadcast("s")
    await ctx.send_message("m", key="listener", value={"said": "hello"})
    await waiting
    return "heard"


@activity("count-calls")
async def count_calls(total: int) -> dict[str, int]:
    return {"counted": total + 1}


async def test_P5_a_process_calls_code_that_takes_the_variables_it_has_parameters_for(world: World) -> None:
    engine = await world.open(workflows=[add_tax])
    await engine.deploy({"a.bpmn": write(start(), call("c", "add_tax"), end(), path("start", "c", "end"))})

    handle = await engine.start("p", {"total": 21, "other": "not for the code"})

    assert await handle.result(timeout=60) == {"total": 21, "other": "not for the code", "gross": 42}


async def test_P5_code_calls_a_process_as_its_child(world: World) -> None:
    engine = await world.open(workflows=[call_process], activities=[count_calls])
    parts = (
        start(),
        job("j", type_="count-calls"),
        script("s1", "counted * 2", "price"),
        end(),
        path("start", "j", "s1", "end"),
    )
    await engine.deploy({"a.bpmn": write(*parts, process_id="priced")})

    handle = await engine.start(call_process, 3)

    assert await handle.result(timeout=60) == {"total": 3, "counted": 4, "price": 8}


async def test_P3_an_error_of_code_is_caught_by_the_boundary_of_its_call(world: World) -> None:
    engine = await world.open(workflows=[refuse])
    parts = (
        start(),
        call("c", "refuse"),
        boundary("b", "c", error("E1")),
        script("handled", "why", "reason"),
        end(),
        end("end2"),
        path("start", "c", "end"),
        path("b", "handled", "end2"),
    )
    await engine.deploy({"a.bpmn": write(*parts)})

    handle = await engine.start("p", {})

    assert (await handle.result(timeout=60))["reason"] == "limit"


async def test_P3_an_error_that_ends_a_process_is_caught_by_the_code_that_called_it(world: World) -> None:
    engine = await world.open(workflows=[catch_error_of_process])
    await engine.deploy({"a.bpmn": write(start(), end("end", error("E2")), path("start", "end"), process_id="throwing")})

    handle = await engine.start(catch_error_of_process)

    assert await handle.result(timeout=60) == "caught E2, a child's: True"


async def test_P3_an_escalation_of_a_called_process_reaches_its_caller_and_both_go_on(world: World) -> None:
    engine = await world.open()
    child = start(), throw("t", escalation("X1")), script("after", "1", "went_on"), end(), path("start", "t", "after", "end")
    parent = (
        start(),
        call("c", "child"),
        boundary("b", "c", escalation("X1"), interrupting=False),
        script("heard", '"yes"', "told"),
        end(),
        end("end2"),
        path("start", "c", "end"),
        path("b", "heard", "end2"),
    )
    await engine.deploy({"child.bpmn": write(*child, process_id="child"), "parent.bpmn": write(*parent)})

    handle = await engine.start("p", {})

    assert await handle.result(timeout=60) == {"told": "yes", "went_on": 1}


async def test_B1_messages_and_signals_pass_between_code_and_diagrams(world: World) -> None:
    engine = await world.open(workflows=[tell_and_listen])
    parts = start(), receive("r"), throw("t", signal("s")), end(), path("start", "r", "t", "end")
    await engine.deploy({"a.bpmn": write(*parts, process_id="listener")})
    process = await engine.start("listener", {}, workflow_id="listener")

    code = await engine.start(tell_and_listen)

    assert await code.result(timeout=60) == "heard"
    assert await process.result(timeout=60) == {"said": "hello"}


@pytest.mark.parametrize("ending", ["", error("E1"), escalation("X1")], ids=["completes", "error", "escalation"])
async def test_B1_signal_of_a_child_reaches_the_boundary_of_its_call_before_the_child_ends(
    world: World, ending: str
) -> None:
    engine = await world.open()
    child = start(), throw("t", signal()), end("thrown", ending), path("start", "t", "thrown")
    parent = (
        start(),
        call("c", "child"),
        boundary("news", "c", signal(), interrupting=False),
        boundary("failed", "c", error("E1")),
        boundary("raised", "c", escalation("X1")),
        script("listen", "1", "heard"),
        *(end(f"end{one}") for one in range(4)),
        path("start", "c", "end0"),
        path("news", "listen", "end1"),
        path("failed", "end2"),
        path("raised", "end3"),
    )
    await engine.deploy({"child.bpmn": write(*child, process_id="child"), "parent.bpmn": write(*parent)})

    handles = [await engine.start("p", {}) for _ in range(20)]

    assert [await one.result(timeout=60) for one in handles] == [{"heard": 1}] * 20


@workflow
async def listen(ctx: Context) -> str:
    await ctx.wait_for_broadcast("s")
    return "heard"


async def test_B1_signal_of_a_child_reaches_its_ancestors_before_it_ends_however_many_others_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink_spreads(monkeypatch, 5)
    engine = await world.open(workflows=[listen])
    child = start(), end("thrown", signal()), path("start", "thrown")
    files = {"child.bpmn": write(*child, process_id="child")}
    for caller, called in (("parent", "child"), ("grandparent", "parent")):
        parts = (
            start(),
            call("c", called),
            boundary("news", "c", signal(), interrupting=False),
            script("listen", "1", f"heard_by_{caller}"),
            end("end0"),
            end("end1"),
            path("start", "c", "end0"),
            path("news", "listen", "end1"),
        )
        files[f"{caller}.bpmn"] = write(*parts, process_id=caller)
    await engine.deploy(files)
    others = [await engine.start(listen) for _ in range(20)]

    handle = await engine.start("grandparent", {})

    assert await handle.result(timeout=60) == {"heard_by_parent": 1, "heard_by_grandparent": 1}
    assert [await one.result(timeout=60) for one in others] == ["heard"] * 20


async def test_P10_processes_that_call_each_other_in_a_circle_end_in_an_incident(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"a.bpmn": write(start(), call("c", "p"), end(), path("start", "c", "end"))})

    await engine.start("p", {}, workflow_id="first")
    await engine.settle()

    found = await engine.incidents()
    assert [one.kind for one in found] == ["call"]
    assert "in a circle" in found[0].message
    await engine.terminate("first")


async def test_M2_a_message_of_a_process_reaches_another_process(world: World) -> None:
    engine = await world.open()
    sender = (
        start(),
        throw(
            "t",
            message("keyed"),
        ),
        end(),
        path("start", "t", "end"),
    )
    receiver = start(), catch("w", message("keyed")), end(), path("start", "w", "end")
    await engine.deploy({"s.bpmn": write(*sender, process_id="sender"), "r.bpmn": write(*receiver, process_id="receiver")})
    waiting = await engine.start("receiver", {"key": "k1"})

    await engine.start("sender", {"key": "k1"})

    assert await waiting.result(timeout=60) == {"key": "k1"}


@pytest.mark.parametrize("given", [[1], "text", 5])
async def test_I4_a_process_takes_an_object_of_variables_alone(world: World, given: Any) -> None:
    engine = await world.open()
    await engine.deploy({"a.bpmn": write(start(), end(), path("start", "end"))})

    with pytest.raises(Exception, match="variables"):
        await engine.start("p", given)

    assert await engine.list() == []


async def test_P10_a_job_that_no_node_offers_waits_and_is_an_incident_after_its_schedule_to_start(world: World) -> None:
    engine = await world.open()
    header = '<zeebe:taskHeaders><zeebe:header key="scheduleToStart" value="PT10M"/></zeebe:taskHeaders>'
    await engine.deploy({"a.bpmn": write(start(), job("j", mapping=header), end(), path("start", "j", "end"))})
    handle = await engine.start("p", {}, workflow_id="w")

    await engine.clock.advance(minutes=9)
    status = await handle.status()
    assert status.pending is not None
    assert [one.name for one in status.pending.activities] == ["work"]
    assert await engine.incidents() == []

    await engine.clock.advance(minutes=2)
    await engine.settle()
    assert [(one.kind, one.element) for one in await engine.incidents()] == [("job", "j")]
