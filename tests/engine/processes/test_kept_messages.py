"""Messages that are kept because an instance has their key: rule M2, in real time, where nothing looks again by itself."""

from __future__ import annotations

from functools import partial

from holdfast import Engine
from tests.engine.support.diagrams import make_by_message, make_wait
from tests.eventually import eventually


async def test_M2_the_end_of_an_instance_starts_the_next_one_by_what_is_kept_at_once() -> None:
    async with Engine("memory://") as engine:
        await engine.deploy({"order.bpmn": make_by_message(work=make_wait())})
        for total in range(3):
            await engine.send_message("placed", "7", {"key": "7", "total": total}, ttl=3600)

        for total in range(3):
            await eventually(partial(has_total, engine, total), f"instance {total} to wait", patience=5)
            await engine.send_message("go", "7", {})

        await eventually(lambda: has_ended(engine), "all instances to end")


async def has_total(engine: Engine, total: int) -> bool:
    """Whether the open instance is the one that the message with this number started."""
    found = await engine.list(workflow="order", status="suspended")
    return bool(found) and (await engine.variables(found[0].execution_id))["total"] == total


async def has_ended(engine: Engine) -> bool:
    """Whether all three instances are completed."""
    return len(await engine.list(workflow="order", status="completed")) == 3
