"""Turns of processes whose own records are far larger than what arrives."""

from __future__ import annotations

import asyncio

from holdfast import Engine, activity
from tests.engine.support.diagrams import make_diagram

_SCRIPTS = 10


def make_copying(iterations: int) -> str:
    """A file with a process that runs many jobs at once, and copies the result of each several times."""
    flows = "".join(f'<bpmn:sequenceFlow id="f{one}" sourceRef="x{one}" targetRef="x{one + 1}"/>' for one in range(_SCRIPTS))
    scripts = "".join(
        f'<bpmn:scriptTask id="x{one}"><bpmn:extensionElements><zeebe:script expression="=text + &quot;-&quot;" '
        'resultVariable="text"/></bpmn:extensionElements></bpmn:scriptTask>'
        for one in range(1, _SCRIPTS + 1)
    )
    return make_diagram(
        work=(
            '<bpmn:subProcess id="work"><bpmn:multiInstanceLoopCharacteristics><bpmn:extensionElements>'
            f'<zeebe:loopCharacteristics inputCollection="=for i in 1..{iterations} return i" inputElement="item"/>'
            "</bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics>"
            '<bpmn:startEvent id="s"/><bpmn:sequenceFlow id="sf" sourceRef="s" targetRef="x0"/>'
            '<bpmn:serviceTask id="x0"><bpmn:extensionElements><zeebe:taskDefinition type="write"/>'
            f"</bpmn:extensionElements></bpmn:serviceTask>{scripts}{flows}</bpmn:subProcess>"
        )
    )


async def test_D2_what_many_jobs_lead_to_is_recorded_in_as_many_turns_as_it_needs() -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    @activity(name="write")
    async def write(item: int) -> dict[str, str]:
        begun.append(item)
        if len(begun) == 50:
            gate.set()
        await gate.wait()
        return {"text": "x" * 20_000}

    async with Engine("memory://", activities=[write], max_turn_bytes=2_000_000) as engine:
        await engine.deploy({"order.bpmn": make_copying(50)})
        handle = await engine.start("order")

        result = await handle.result(timeout=20)

    assert isinstance(result, dict)
    assert result["text"] == "x" * 20_000 + "-" * _SCRIPTS
