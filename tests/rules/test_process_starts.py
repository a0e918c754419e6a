"""What starts processes beside calls: rules T4, M2, B1 and I5 of their start events."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Engine
from holdfast.errors import InvalidProcess, NotFound
from holdfast.testing import TestEngine
from tests.engine.support.diagrams import (
    make_by_message,
    make_by_signal,
    make_caller,
    make_diagram,
    make_file,
    make_timed,
    make_wait,
)
from tests.eventually import eventually
from tests.rules.world import Nodes, World

START = "2030-01-01T00:00:00Z"
"""When virtual time begins."""
WITHOUT_EVENTS = make_file(
    '<bpmn:process id="order" isExecutable="true">'
    + "".join(
        f'<bpmn:scriptTask id="{name}"><bpmn:extensionElements><zeebe:script expression="={value}" resultVariable="{name}"/>'
        "</bpmn:extensionElements></bpmn:scriptTask>"
        for name, value in (("a", 1), ("b", 2))
    )
    + "</bpmn:process>"
)


async def count(engine: TestEngine, workflow: str = "order") -> int:
    """How many executions of a process there are, at rest."""
    await engine.settle()
    return len(await engine.list(workflow=workflow))


# --- timers ---


@pytest.mark.parametrize(
    ("kind", "text", "fires"),
    [
        ("timeDuration", "PT10M", [0, 1, 1, 1]),
        ("timeDate", "2030-01-01T00:15:00Z", [0, 0, 1, 1]),
        ("timeDate", "2020-01-01T00:00:00Z", [1, 1, 1, 1]),
        ("timeCycle", "R2/PT10M", [0, 1, 2, 2]),
        ("timeCycle", "R/PT10M", [0, 1, 2, 3]),
        ("timeCycle", "*/10 * * * *", [0, 1, 2, 3]),
        ("timeDuration", '=duration("PT10M")', [0, 1, 1, 1]),
    ],
)
async def test_T4_a_start_timer_counts_from_deployment(world: World, kind: str, text: str, fires: list[int]) -> None:
    engine = await world.open(auto_advance=False)
    await engine.deploy({"order.bpmn": make_timed(kind, text)})

    found = [await count(engine)]
    for _ in range(3):
        await engine.clock.advance(minutes=10)
        found.append(await count(engine))

    assert found == fires


async def test_T4_unchanged_content_leaves_a_timer_and_its_count_alone(world: World) -> None:
    engine = await world.open(auto_advance=False)
    diagram = make_timed("timeCycle", "R2/PT10M")
    await engine.deploy({"order.bpmn": diagram})
    await engine.clock.advance(minutes=15)

    await engine.restart()
    await engine.deploy({"order.bpmn": diagram})
    await engine.clock.advance(minutes=5)
    second = await count(engine)
    await engine.clock.advance(minutes=60)

    assert (second, await count(engine)) == (2, 2)


async def test_T4_a_redeploy_that_changes_a_timer_counts_anew(world: World) -> None:
    engine = await world.open(auto_advance=False)
    await engine.deploy({"order.bpmn": make_timed("timeDuration", "PT10M")})
    await engine.clock.advance(minutes=9)

    await engine.deploy({"order.bpmn": make_timed("timeDuration", "PT10M", says="two")})
    await engine.clock.advance(minutes=9)
    before = await count(engine)
    await engine.clock.advance(minutes=1)

    assert (before, await count(engine)) == (0, 1)
    assert [one.code_version for one in await engine.list()] == ["2"]


@pytest.mark.parametrize("how", ["removed", "undeployed", "disabled"])
async def test_T4_what_is_removed_undeployed_or_disabled_fires_no_more(world: World, how: str) -> None:
    engine = await world.open(auto_advance=False)
    await engine.deploy({"order.bpmn": make_timed("timeCycle", "R/PT10M")})
    await engine.clock.advance(minutes=10)
    assert await count(engine) == 1

    if how == "removed":
        await engine.deploy({"order.bpmn": make_diagram()})
    elif how == "undeployed":
        await engine.undeploy("order")
    else:
        await engine.disable("order")
    await engine.clock.advance(minutes=60)

    assert await count(engine) == 1
    assert await engine.schedules() == []


async def test_T4_an_enabled_timer_counts_from_then_and_past_dates_do_not_fire_again(world: World) -> None:
    engine = await world.open(auto_advance=False)
    await engine.deploy({"one.bpmn": make_timed("timeCycle", "R/PT10M", "cycle")})
    await engine.deploy({"two.bpmn": make_timed("timeDate", START, "date")})
    assert await count(engine, "date") == 1
    for process in ("cycle", "date"):
        await engine.disable(process)
    await engine.clock.advance(minutes=15)

    for process in ("cycle", "date"):
        await engine.enable(process)
    await engine.clock.advance(minutes=9)
    before = await count(engine, "cycle")
    await engine.clock.advance(minutes=1)

    assert (before, await count(engine, "cycle"), await count(engine, "date")) == (0, 1, 1)


async def test_T4_there_is_one_instance_per_fire_on_several_nodes(nodes: Nodes) -> None:
    one = await nodes.open("one")
    for name in ("two", "three"):
        await nodes.open(name)
    await one.deploy({"order.bpmn": make_timed("timeCycle", "R5/PT10M")})

    for _ in range(7):
        await nodes.clock.advance(minutes=10)
        for engine in nodes.engines.values():
            await engine.settle()

    assert await count(one) == 5


async def test_P9_a_timer_that_says_no_time_is_refused(world: World) -> None:
    engine = await world.open()

    with pytest.raises(InvalidProcess, match=r"order\.bpmn"):
        await engine.deploy({"order.bpmn": make_timed("timeDuration", "=missing")})

    assert await engine.definitions() == []


# --- messages ---


async def test_M2_a_message_starts_one_instance_per_definition_and_key_at_a_time(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_by_message(work=make_wait())})

    first = await engine.send_message("placed", "7", {"key": "7", "total": 1}, ttl=60)
    second = await engine.send_message("placed", "7", {"key": "7", "total": 2}, ttl=60)
    other = await engine.send_message("placed", "8", {"key": "8"}, ttl=60)
    assert [first.started, second.kept, other.started] == [True, True, True]
    assert await count(engine) == 2

    await engine.send_message("go", "7", {})

    assert await count(engine) == 3
    status = await engine.query_status("order:7")
    assert status.status == "suspended"
    assert await engine.variables("order:7") == {"key": "7", "total": 2}


async def test_M2_a_message_that_is_kept_starts_a_process_that_is_deployed_later(world: World) -> None:
    engine = await world.open()
    kept = await engine.send_message("placed", "7", {"total": 1}, ttl=3600)
    assert kept.kept

    await engine.deploy({"order.bpmn": make_by_message()})

    assert await count(engine) == 1


async def test_M2_messages_start_nothing_after_undeploy(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_by_message()})
    await engine.undeploy("order")

    with pytest.raises(NotFound):
        await engine.send_message("placed", "7", {})


async def test_M2_a_message_starts_the_newest_version(nodes: Nodes) -> None:
    one, two = await nodes.open("one"), await nodes.open("two")
    await one.deploy({"order.bpmn": make_by_message()})
    await one.send_message("placed", "1", {})

    await two.deploy({"order.bpmn": make_by_message(work=make_wait())})
    await one.send_message("placed", "2", {"key": "2"})

    await two.settle()
    assert await count(one) == 2
    assert {one.workflow_id: one.code_version for one in await one.list()} == {"order:1": "1", "order:2": "2"}


# --- signals ---


async def test_B1_a_signal_starts_every_definition_that_has_it_and_counts_them(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"one.bpmn": make_by_signal("one"), "two.bpmn": make_by_signal("two")})

    answer = await engine.broadcast_signal("opened", {"door": 1})

    assert (answer.delivered, answer.started) == (0, 2)
    assert await count(engine, "one") == 1
    (started,) = await engine.list(workflow="two")
    assert await engine.handle(started.workflow_id).result(timeout=60) == {"door": 1, "said": "one"}


async def test_I5_start_events_hold_in_their_own_org(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"one.bpmn": make_by_signal("one"), "two.bpmn": make_by_message("two")}, org="a")

    assert (await engine.broadcast_signal("opened", org="b")).started == 0
    with pytest.raises(NotFound):
        await engine.send_message("placed", "7", {}, org="b")

    assert (await engine.broadcast_signal("opened", org="a")).started == 1
    assert (await engine.send_message("placed", "7", {}, org="a")).started


# --- plain starts ---


async def test_M2_process_without_start_events_begins_with_what_no_flow_leads_to(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": WITHOUT_EVENTS})

    handle = await engine.start("order", {})

    assert await handle.result() == {"a": 1, "b": 2}


async def test_P10_call_of_a_process_that_only_events_start_is_an_incident(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_by_message(), "caller.bpmn": make_caller("order")})

    handle = await engine.start("caller", {"key": "k"}, workflow_id="caller")

    await handle.wait_for(lambda status: status.waiting_kind == "incident")
    [incident] = await engine.incidents(target="caller")
    assert "all of its start events wait for something" in incident.message
    assert await count(engine) == 0


async def test_M2_messages_whose_process_is_disabled_on_their_way_are_kept() -> None:
    async with Engine("memory://") as engine:
        await engine.deploy({"order.bpmn": make_by_message()})

        async def send(sender: int) -> None:
            for number in range(50):
                await engine.send_message("placed", f"{sender}-{number}", ttl=3600)

        async def change() -> None:
            for _ in range(20):
                await engine.disable("order")
                await asyncio.sleep(0)
                await engine.enable("order")

        await asyncio.gather(*map(send, range(4)), change())

        assert await engine.dead_letters() == []
        await eventually(lambda: has_started(engine, 200))


async def has_started(engine: Engine, number: int) -> bool:
    """Whether there are so many executions of the process."""
    return len(await engine.list(workflow="order", limit=number + 1)) == number
