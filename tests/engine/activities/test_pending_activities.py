"""Why an open activity does not run, and where one runs, as any of several nodes tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.engine.pending import ActivityState, PendingActivity, PendingWork
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.eventually import eventually

DOOR = Door()


@pytest.fixture(autouse=True)
def _door() -> Iterator[None]:
    DOOR.begin_anew()
    yield
    DOOR.open()


@activity
async def paint() -> str:
    await DOOR.wait()
    return "painted"


@activity(name="paint", max_concurrent=1)
async def paint_one() -> str:
    await DOOR.wait()
    return "painted"


@activity(name="paint", queue="gpu")
async def paint_on_gpu() -> str:
    await DOOR.wait()
    return "painted"


@workflow
async def wall(ctx: Context) -> str:
    return await ctx.run(paint)


@activity
async def sweep() -> str:
    await DOOR.wait()
    return "swept"


@workflow
async def house(ctx: Context) -> list[str]:
    return list(await asyncio.gather(ctx.run(sweep), ctx.run(paint)))


@workflow
async def wall_on_gpu(ctx: Context) -> str:
    return await ctx.run(paint_on_gpu)


async def find_pending(engine: Engine, target: str) -> PendingWork:
    info = await engine.query_status(target)
    assert info.pending is not None
    return info.pending


async def find_activity(engine: Engine, target: str) -> PendingActivity:
    [found] = (await find_pending(engine, target)).activities
    return found


async def reaches(engine: Engine, target: str, state: ActivityState) -> PendingActivity:
    """The only activity of an execution, once it is in that state by what an engine tells."""

    async def look() -> PendingActivity | None:
        found = await find_activity(engine, target)
        return found if found.state is state else None

    found: PendingActivity = await eventually(look, f"activity of '{target}' {state}")
    return found


async def test_O3_every_node_tells_which_node_runs_an_activity(cluster: Cluster) -> None:
    one = await cluster.open("one", wall, paint)
    two = await cluster.open("two", wall)

    await one.start(wall, workflow_id="w")
    await eventually(lambda: DOOR.inside == 1)

    told = [await find_activity(engine, "w") for engine in (one, two)]
    assert {(found.state, found.node, found.attempt) for found in told} == {(ActivityState.RUNNING, "one", 1)}
    assert [found.started_at is not None for found in told] == [True, False]


async def test_O3_an_activity_that_no_living_node_has_is_told_as_such_until_one_takes_it(cluster: Cluster) -> None:
    one = await cluster.open("one", wall)
    await one.start(wall, workflow_id="w")

    found = await reaches(one, "w", ActivityState.NOT_OFFERED)
    assert (str(found.state), found.node, found.queue) == ("no node offers it", None, "default")

    two = await cluster.open("two", paint)
    found = await reaches(one, "w", ActivityState.RUNNING)
    assert found.node == "two"
    mine = await reaches(two, "w", ActivityState.RUNNING)
    assert mine.started_at is not None


async def test_O3_the_nodes_of_an_execution_are_those_that_run_its_activities(cluster: Cluster) -> None:
    one = await cluster.open("one", house, sweep)
    two = await cluster.open("two", paint)
    await one.start(house, workflow_id="w")
    await eventually(lambda: DOOR.inside == 2)

    told = [await engine.query_status("w") for engine in (one, two)]
    assert [info.nodes for info in told] == [("one", "two")] * 2
    for info in told:
        assert info.pending is not None
        assert {(found.name, found.node) for found in info.pending.activities} == {("sweep", "one"), ("paint", "two")}

    DOOR.open()
    await one.handle("w").result()
    assert (await one.query_status("w")).nodes == ()


async def test_O3_a_node_that_serves_another_queue_does_not_offer_it(cluster: Cluster) -> None:
    one = await cluster.open("one", wall_on_gpu, paint, queues=["default"])
    await one.start(wall_on_gpu, workflow_id="w")

    await reaches(one, "w", ActivityState.NOT_OFFERED)
    await cluster.open("two", paint_on_gpu, queues=["gpu"])

    assert (await reaches(one, "w", ActivityState.RUNNING)).node == "two"


async def test_O3_an_activity_for_which_no_slot_is_free_waits_for_a_place(cluster: Cluster) -> None:
    one = await cluster.open("one", wall)
    two = await cluster.open("two", paint_one)
    await one.start(wall, workflow_id="first")
    await eventually(lambda: DOOR.inside == 1)

    await one.start(wall, workflow_id="second")

    told = [await reaches(engine, "second", ActivityState.WAITS_FOR_PLACE) for engine in (one, two)]
    assert str(told[0].state) == "waits for a place"
    DOOR.open()
    assert await one.handle("second").result() == "painted"


async def test_O3_an_activity_whose_node_died_is_told_as_such(cluster: Cluster) -> None:
    one = await cluster.open("one", wall, **MORTAL)
    await cluster.open("two", paint, **MORTAL)
    await one.start(wall, workflow_id="w")
    await eventually(lambda: DOOR.inside == 1)

    await cluster.kill("two")

    states: list[ActivityState] = []

    async def is_offered_no_longer() -> bool:
        states.append((await find_activity(one, "w")).state)
        return states[-1] is ActivityState.NOT_OFFERED

    await eventually(is_offered_no_longer)
    assert set(states) <= {ActivityState.RUNNING, ActivityState.NODE_GONE, ActivityState.NOT_OFFERED}


async def test_O3_a_node_without_the_code_says_that_it_does_not_know_the_code(cluster: Cluster) -> None:
    one = await cluster.open("one", wall, paint)
    two = await cluster.open("two", paint)
    await one.start(wall, workflow_id="w")
    await eventually(lambda: DOOR.inside == 1)

    here, there = await find_pending(one, "w"), await find_pending(two, "w")

    assert (here.is_code_known, there.is_code_known) == (True, False)
    assert (here.activities[0].place or "").startswith(__file__)
    assert there.activities[0].place is None
