"""The test plans of the first designs of signal and timer events, point by point, on processes that are deployed.

Signals are plan 000, timers plan 001. What is only about reading files is in `tests/bpmn/test_writing.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.engine.handles import WorkflowHandle
from holdfast.errors import MessageRefused
from holdfast.testing import TestEngine
from tests.bpmn.support.diagrams import (
    boundary,
    catch,
    end,
    flow,
    gateway,
    message,
    path,
    script,
    signal,
    start,
    throw,
    timer,
    user,
    write,
)
from tests.rules.world import World

CATCHES = write(start(), catch("c", signal()), script("after", "1", "x"), end(), path("start", "c", "after", "end"))
THROWS = write(
    start(),
    throw("up", signal()),
    script("after", "1", "y"),
    end(),
    path("start", "up", "after", "end"),
    process_id="thrower",
)
HOST = write(
    start(),
    user("host"),
    script("normal", '"normal"', "way"),
    end(),
    path("start", "host", "normal", "end"),
    boundary("on_signal", "host", signal()),
    boundary("on_timer", "host", timer("PT1H")),
    boundary("on_message", "host", message()),
    script("signalled", '"signal"', "way"),
    script("late", '"timer"', "way"),
    script("told", '"message"', "way"),
    end("end2"),
    path("on_signal", "signalled", "end2"),
    path("on_timer", "late", "end2"),
    path("on_message", "told", "end2"),
)


def go_on_after(element: str, last: str) -> str:
    """The host, with another user task between an element and its end event."""
    more = user("more") + flow("more", last)
    return HOST.replace(flow(element, last), more + flow(element, "more"))


async def open_with(world: World, *files: str) -> TestEngine:
    """An engine with these files deployed, in which time passes only when a test says so."""
    engine = await world.open(auto_advance=False)
    await engine.deploy({f"{index}.bpmn": file.encode() for index, file in enumerate(files)})
    return engine


async def begin(
    engine: TestEngine, process: str = "p", variables: dict[str, Any] | None = None, **options: Any
) -> WorkflowHandle[Any]:
    """An execution that has come to rest."""
    handle: WorkflowHandle[Any] = await engine.start(process, variables or {}, **options)
    await engine.settle()
    return handle


async def list_tasks(engine: TestEngine) -> list[str]:
    """The ids of all user tasks that somebody has to do."""
    return [one.task_id for one in await engine.tasks() if one.state not in ("completed", "cancelled")]


async def finish_task(engine: TestEngine) -> None:
    """Somebody does the only open user task."""
    [task_id] = await list_tasks(engine)
    await engine.claim_task(task_id, by="ann")
    await engine.complete_task(task_id, {}, by="ann")
    await engine.settle()


# --- plan 000: signals ---


async def test_seed_000_1_signal_catch_and_external_throw(world: World) -> None:
    engine = await open_with(world, CATCHES)
    handle = await begin(engine)
    assert (await handle.status()).status == "suspended"

    answer = await engine.broadcast_signal("s")

    assert (answer.delivered, answer.started) == (1, 0)
    assert await handle.result(timeout=60) == {"x": 1}


async def test_seed_000_2_signal_catch_and_workflow_throw(world: World) -> None:
    engine = await open_with(world, CATCHES, THROWS)
    catcher = await begin(engine)

    thrower = await begin(engine, "thrower")

    assert await thrower.result(timeout=60) == {"y": 1}
    assert await catcher.result(timeout=60) == {"x": 1}


async def test_seed_000_3_workflow_catches_its_own_signal(world: World) -> None:
    own = write(
        start(),
        gateway("parallel", "f"),
        catch("c", signal()),
        throw("up", signal()),
        script("after", "1", "x"),
        end(),
        end("end2"),
        path("start", "f", "c", "after", "end"),
        path("f", "up", "end2"),
    )
    engine = await open_with(world, own)

    handle = await begin(engine)

    assert await handle.result(timeout=60) == {"x": 1}


async def test_seed_000_4_every_subscriber_receives_the_signal(world: World) -> None:
    engine = await open_with(world, CATCHES)
    first, second = await begin(engine), await begin(engine)

    answer = await engine.broadcast_signal("s", {"from": "outside"})

    assert answer.delivered == 2
    for handle in (first, second):
        assert await handle.result(timeout=60) == {"x": 1, "from": "outside"}


async def test_seed_000_5_signal_boundary_interrupts_its_host(world: World) -> None:
    engine = await open_with(world, HOST)
    handle = await begin(engine)

    await engine.broadcast_signal("s")

    assert await handle.result(timeout=60) == {"way": "signal"}
    assert await list_tasks(engine) == []


async def test_seed_000_6_signal_boundary_ends_the_other_boundaries(world: World) -> None:
    engine = await open_with(world, go_on_after("signalled", "end2"))
    handle = await begin(engine, workflow_id="one")

    await engine.broadcast_signal("s")
    await engine.settle()

    with pytest.raises(MessageRefused):
        await engine.send_message("m", "one")
    assert (await engine.broadcast_signal("s")).delivered == 0
    await engine.clock.advance(hours=2)
    await engine.settle()
    assert (await handle.status()).status == "suspended"
    await finish_task(engine)
    assert await handle.result(timeout=60) == {"way": "signal"}


async def test_seed_000_7_signal_after_the_host_completed_is_ignored(world: World) -> None:
    engine = await open_with(world, go_on_after("normal", "end"))
    handle = await begin(engine)
    await finish_task(engine)

    assert (await engine.broadcast_signal("s")).delivered == 0
    await finish_task(engine)

    assert await handle.result(timeout=60) == {"way": "normal"}


async def test_seed_000_8_throw_event_completes_and_the_process_goes_on(world: World) -> None:
    engine = await open_with(world, THROWS)

    handle = await begin(engine, "thrower")

    assert await handle.result(timeout=60) == {"y": 1}


# --- plan 001: timers ---


def make_wait(definition: str) -> str:
    return write(start(), catch("c", definition), script("after", "1", "x"), end(), path("start", "c", "after", "end"))


async def test_seed_001_1_timer_fires_and_the_workflow_completes(world: World) -> None:
    engine = await open_with(world, make_wait(timer("PT5M")))
    handle = await begin(engine)
    await engine.clock.advance(minutes=4)
    assert (await handle.status()).status == "suspended"

    await engine.clock.advance(minutes=1)

    assert await handle.result(timeout=60) == {"x": 1}


@pytest.mark.parametrize("kind", ["timeDuration", "timeDate", "timeCycle"])
async def test_seed_001_2_durations_dates_and_cycles_are_understood(world: World, kind: str) -> None:
    engine = await world.open(auto_advance=False)
    due = engine.clock.present + timedelta(minutes=5)
    text = {"timeDuration": "PT5M", "timeDate": due.isoformat(), "timeCycle": "R1/PT5M"}[kind]
    await engine.deploy({"p.bpmn": make_wait(timer(text, kind)).encode()})
    handle = await begin(engine)

    await engine.clock.advance(minutes=4)
    assert (await handle.status()).status == "suspended"
    await engine.clock.advance(minutes=1)

    assert await handle.result(timeout=60) == {"x": 1}


async def test_seed_001_3_timer_between_two_tasks(world: World) -> None:
    file = write(start(), user("a"), catch("c", timer("PT5M")), user("b"), end(), path("start", "a", "c", "b", "end"))
    engine = await open_with(world, file)
    handle = await begin(engine)

    await finish_task(engine)
    assert await list_tasks(engine) == []
    await engine.clock.advance(minutes=5)
    await finish_task(engine)

    assert await handle.result(timeout=60) == {}


async def test_seed_001_4_variables_are_there_after_the_wait(world: World) -> None:
    engine = await open_with(world, make_wait(timer("PT5M")))
    handle = await begin(engine, "p", {"order": {"id": 7}, "n": 1.5})

    await engine.restart()
    await engine.clock.advance(minutes=5)

    assert await engine.handle(handle.workflow_id).result(timeout=60) == {"order": {"id": 7}, "n": 1.5, "x": 1}


async def test_seed_001_5_timer_before_the_end_of_its_host_interrupts_it(world: World) -> None:
    engine = await open_with(world, HOST)
    handle = await begin(engine)

    await engine.clock.advance(hours=1)

    assert await handle.result(timeout=60) == {"way": "timer"}
    assert await list_tasks(engine) == []


async def test_seed_001_6_host_that_completes_first_discards_the_timer(world: World) -> None:
    engine = await open_with(world, HOST)
    handle = await begin(engine)

    await finish_task(engine)

    assert await handle.result(timeout=60) == {"way": "normal"}


async def test_seed_001_7_no_timer_is_left_when_the_host_has_completed(world: World) -> None:
    engine = await open_with(world, go_on_after("normal", "end"))
    handle = await begin(engine)

    await finish_task(engine)
    await engine.clock.advance(hours=2)
    await engine.settle()

    kinds = [one.kind for one in await handle.history()]
    assert "TimerCancelled" in kinds
    assert "TimerFired" not in kinds
    assert (await handle.status()).status == "suspended"


def make_timed(kind: str, text: str) -> str:
    return write(start("s0", timer(text, kind)), script("a", "1", "x"), end(), path("s0", "a", "end"))


async def test_seed_001_8_timer_start_creates_an_instance_when_it_fires(world: World) -> None:
    engine = await open_with(world, make_timed("timeDuration", "PT5M"))
    assert await engine.list() == []

    await engine.clock.advance(minutes=5)
    await engine.settle()

    [started] = await engine.list()
    assert await engine.handle(started.workflow_id).result(timeout=60) == {"x": 1}


async def test_seed_001_9_cycle_creates_so_many_instances_and_stops(world: World) -> None:
    engine = await open_with(world, make_timed("timeCycle", "R3/PT10M"))
    found = []
    for _ in range(5):
        await engine.clock.advance(minutes=10)
        await engine.settle()
        found.append(len(await engine.list()))

    assert found == [1, 2, 3, 3, 3]


async def test_seed_001_10_undeploy_ends_the_timer_start(world: World) -> None:
    engine = await open_with(world, make_timed("timeCycle", "R/PT10M"))
    await engine.clock.advance(minutes=10)

    await engine.undeploy("p")
    await engine.clock.advance(hours=2)
    await engine.settle()

    assert len(await engine.list()) == 1
