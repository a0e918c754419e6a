"""Activities that the node which took the turn cannot run: offered to whoever can, taken once, handed in, withdrawn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import ActivityFailed, ActivityTimedOut, Context, Retry, activity, activity_info, heartbeat, workflow
from holdfast.activities.definitions import Activity
from holdfast.core import events
from holdfast.engine.rows import from_row
from holdfast.errors import WorkflowFailed
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.rows import ActivityRow
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually
from tests.rules.world import Nodes, once

ONCE = Retry(max_attempts=1)
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    RAN.clear()


@activity(retry=ONCE)
async def double(number: int) -> int:
    RAN.append((number, activity_info().attempt))
    return 2 * number


@activity(name="double", queue="gpu", retry=ONCE)
async def double_on_gpu(number: int) -> int:
    RAN.append("gpu")
    return 2 * number


@workflow
async def sums(ctx: Context, count: int) -> int:
    return sum(await asyncio.gather(*(ctx.run(double, number) for number in range(count))))


@workflow
async def one_by_one(ctx: Context, count: int) -> list[int]:
    return [await ctx.run(double, number) for number in range(count)]


async def find_offers(cluster: Cluster) -> list[ActivityRow]:
    """Everything that is offered and not taken; taken by nobody that counts."""
    store = cluster.store
    routes = {f"{queue}\t{name}" for queue in ("default", "gpu") for name in ("double", "slow", "flaky", "limited")}
    return await store.take_offers("looker", routes, 1_000)


def make_slow(door: Door, **options: Any) -> Activity[..., Any]:
    """An activity that waits at a door."""

    @activity(name="slow", retry=options.pop("retry", ONCE), **options)
    async def slow() -> str:
        await door.wait(activity_info().attempt)
        return "done"

    return slow


@workflow
async def waits(ctx: Context) -> Any:
    """Runs the slow activity until it is told to stop."""
    running = ctx.run("slow")
    winner = await ctx.wait_any(ctx.signal("stop"), running)
    if winner.index == 0:
        running.cancel()
        await ctx.wait_for_signal("end")
        return "stopped"
    return winner.value


# --- who runs what ---


async def test_N3_activity_runs_where_it_is_known(cluster: Cluster) -> None:
    one = await cluster.open("one", one_by_one)
    await cluster.open("two", double)

    assert await (await one.start(one_by_one, 5, workflow_id="w")).result() == [0, 2, 4, 6, 8]
    assert [(number, 1) for number in range(5)] == RAN
    assert len(await find_events(one, "w", events.ActivityCompleted)) == 5
    assert await find_offers(cluster) == []


async def test_N3_activity_that_nobody_has_waits_and_makes_nobody_an_orphan(cluster: Cluster) -> None:
    one = await cluster.open("one", one_by_one)
    handle = await one.start(one_by_one, 1, workflow_id="w")

    row = await cluster.find_row("w")
    assert row.nodes == ()
    assert from_row(row).attempt_of(1).offered
    assert await one.store.list_orphans([], 10) == []
    await cluster.open("two", double)
    assert await handle.result() == [0]


async def test_N3_activity_runs_where_its_queue_is_served(cluster: Cluster) -> None:
    @workflow
    async def on_gpu(ctx: Context) -> int:
        return await ctx.run(double_on_gpu, 21)

    one = await cluster.open("one", on_gpu, double, queues=["default"])
    handle = await one.start(on_gpu)
    await cluster.open("two", double_on_gpu)

    assert await handle.result() == 42
    assert RAN == ["gpu"]


async def test_N3_activities_beyond_the_places_of_a_node_go_to_others(cluster: Cluster) -> None:
    doors = {"one": Door(), "two": Door()}
    one = await cluster.open("one", waits_for_all, make_slow(doors["one"]), max_activities=4)
    handle = await one.start(waits_for_all, 9)
    await eventually(lambda: doors["one"].inside == 4)

    await cluster.open("two", make_slow(doors["two"]), max_activities=2)
    await eventually(lambda: doors["two"].inside == 2)
    assert doors["one"].inside == 4
    for door in doors.values():
        door.open()
    assert await handle.result() == ["done"] * 9
    assert len(doors["one"].came) + len(doors["two"].came) == 9


async def test_N3_activity_that_waits_for_a_place_goes_to_a_node_that_has_one(cluster: Cluster) -> None:
    doors = {"one": Door(), "two": Door()}
    one = await cluster.open("one", waits_for_all, make_slow(doors["one"]), max_activities=1)
    offer_again = hooks.keep_all_activities(one)
    handle = await one.start(waits_for_all, 3, workflow_id="w")
    await eventually(lambda: doors["one"].inside == 1)
    offer_again()  # before it hears of the other node: else it would keep once more what it gives back
    await cluster.open("two", make_slow(doors["two"]))

    await eventually(lambda: doors["two"].inside == 2)
    assert doors["one"].came == [1]
    assert doors["two"].came == [2, 2]
    attempts = from_row(await cluster.find_row("w")).details.attempts
    assert [attempt.lost for attempt in attempts.values()] == [0, 0], "nothing was lost"
    for door in doors.values():
        door.open()
    assert await handle.result() == ["done"] * 3


@workflow
async def waits_for_all(ctx: Context, count: int) -> list[str]:
    return list(await asyncio.gather(*(ctx.run("slow") for _ in range(count))))


async def test_node_takes_its_own_offers_when_it_has_places_again(cluster: Cluster) -> None:
    one = await cluster.open("one", sums, double, max_activities=4)

    assert await (await one.start(sums, 200)).result() == sum(2 * number for number in range(200))
    assert sorted(RAN) == [(number, 1) for number in range(200)]
    assert await find_offers(cluster) == []


async def test_node_takes_only_as_many_offers_as_bounds_allow(cluster: Cluster) -> None:
    most = [0]

    @activity(max_concurrent=2, retry=ONCE)
    async def limited() -> None:
        RAN.append("in")
        most[0] = max(most[0], RAN.count("in") - RAN.count("out"))
        await asyncio.sleep(0.001)
        RAN.append("out")

    @workflow
    async def many(ctx: Context) -> None:
        await asyncio.gather(*(ctx.run("limited") for _ in range(30)))

    one = await cluster.open("one", many)
    handle = await one.start(many)
    two = await cluster.open("two", limited)

    await handle.result()
    assert RAN.count("out") == 30
    assert most[0] == 2
    await eventually(lambda: hooks.count_activities(two) == 0, "the node to hear that its last results were taken")


async def test_many_nodes_take_each_activity_once(cluster: Cluster) -> None:
    one = await cluster.open("one", sums)
    handle = await one.start(sums, 100)
    for name in ("two", "three", "four"):
        await cluster.open(name, double, max_activities=8)

    assert await handle.result() == 9_900
    assert sorted(RAN) == [(number, 1) for number in range(100)]


# --- failing ---


async def test_A2_offered_activity_that_fails_is_tried_again_and_offered_again(cluster: Cluster) -> None:
    @activity(retry=Retry(max_attempts=3, initial=0.01))
    async def flaky() -> int:
        RAN.append(activity_info().attempt)
        if len(RAN) < 3:
            raise ValueError("not yet")
        return len(RAN)

    @workflow
    async def tries(ctx: Context) -> int:
        return await ctx.run(flaky)

    one = await cluster.open("one", tries)
    await cluster.open("two", flaky)

    assert await (await one.start(tries)).result() == 3
    assert RAN == [1, 2, 3]


async def test_A1_last_failure_of_an_offered_activity_reaches_the_workflow(cluster: Cluster) -> None:
    @activity(name="flaky", retry=ONCE)
    async def broken() -> int:
        raise ValueError("for good")

    @workflow
    async def tries(ctx: Context) -> str:
        try:
            await ctx.run(broken)
        except ActivityFailed as error:
            return error.type
        return ""

    one = await cluster.open("one", tries)
    await cluster.open("two", broken)

    assert await (await one.start(tries)).result() == "ValueError"
    assert await find_offers(cluster) == []


async def test_offer_that_cannot_be_read_fails_the_activity(cluster: Cluster) -> None:
    one = await cluster.open("one", one_by_one)
    handle = await one.start(one_by_one, 1)
    two = await cluster.open("two", double, queues=["other"])
    (row,) = await two.store.take_offers("two", ["default\tdouble"], 1)
    damaged = ActivityRow(row.org, row.execution_id, row.number, row.attempt, row.route, b"[1, {}]")
    hooks.begin_offer(two, damaged)

    with pytest.raises(WorkflowFailed, match="CorruptStore"):
        await handle.result()


# --- timeouts ---


@pytest.mark.parametrize("option", ["schedule_to_start", "schedule_to_close"])
async def test_A3_offered_activity_that_nobody_takes_in_time_is_over(cluster: Cluster, option: str) -> None:
    @workflow
    async def impatient(ctx: Context) -> str:
        try:
            await ctx.run(make_slow(Door(), **{option: 0.1}))
        except ActivityTimedOut as error:
            return error.type
        return ""

    one = await cluster.open("one", impatient)

    assert await (await one.start(impatient, workflow_id="w")).result() == option
    assert await find_offers(cluster) == []
    assert (await one.store.count()).timers == 0


async def test_A3_taken_activity_is_no_longer_watched_by_a_timer(cluster: Cluster) -> None:
    door = Door()
    slow = make_slow(door, schedule_to_start=3600, schedule_to_close=7200)

    @workflow
    async def patient(ctx: Context) -> str:
        return await ctx.run(slow)

    one = await cluster.open("one", patient)
    handle = await one.start(patient)
    assert (await one.store.count()).timers == 1
    await cluster.open("two", slow)
    await eventually(lambda: door.inside)

    assert (await one.store.count()).timers == 0
    door.open()
    assert await handle.result() == "done"


async def test_A3_timeouts_of_a_taken_activity_are_watched_by_its_taker(cluster: Cluster) -> None:
    door = Door()
    slow = make_slow(door, start_to_close=0.1)

    @workflow
    async def impatient(ctx: Context) -> str:
        try:
            return await ctx.run(slow)
        except ActivityTimedOut as error:
            return error.type

    one = await cluster.open("one", impatient)
    await cluster.open("two", slow)

    assert await (await one.start(impatient)).result() == "start_to_close"
    assert door.turned_away == [1]


async def test_A3_what_a_taken_activity_reported_reaches_its_next_attempt(cluster: Cluster) -> None:
    @activity(name="flaky", retry=Retry(max_attempts=2, initial=0.01))
    async def reports() -> Any:
        before = activity_info().heartbeat_details
        if before is None:
            heartbeat({"page": 7})
            raise ValueError("after the report")
        return before

    @workflow
    async def asks(ctx: Context) -> Any:
        return await ctx.run(reports)

    one = await cluster.open("one", asks)
    await cluster.open("two", reports)

    assert await (await one.start(asks)).result() == {"page": 7}


# --- no longer wanted ---


async def test_offer_that_is_cancelled_before_it_is_taken_is_gone(cluster: Cluster) -> None:
    one = await cluster.open("one", waits)
    handle = await one.start(waits, workflow_id="w")
    await handle.signal("stop")
    await handle.signal("end")

    assert await handle.result() == "stopped"
    assert await find_offers(cluster) == []


async def test_N3_taken_activity_that_is_cancelled_is_told(cluster: Cluster) -> None:
    door = Door()
    one = await cluster.open("one", waits)
    handle = await one.start(waits)
    await cluster.open("two", make_slow(door))
    await eventually(lambda: door.inside)
    await handle.signal("stop")

    await eventually(lambda: door.turned_away)
    await handle.signal("end")
    assert await handle.result() == "stopped"
    assert len(door.came) == 1


async def test_N3_taken_activity_of_an_execution_that_is_terminated_is_told(cluster: Cluster) -> None:
    door = Door()
    one = await cluster.open("one", waits)
    handle = await one.start(waits)
    await cluster.open("two", make_slow(door))
    await eventually(lambda: door.inside)
    await handle.terminate()

    await eventually(lambda: door.turned_away)


@pytest.mark.parametrize("how", ["stop", "terminate"])
async def test_N3_activity_that_another_nodes_turn_ended_is_told(cluster: Cluster, how: str) -> None:
    door = Door()
    one = await cluster.open("one", waits, make_slow(door))
    two = await cluster.open("two", waits, make_slow(door))
    handle = await one.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    assert (await cluster.find_row("w")).nodes == ("one",)

    await (two.signal_workflow("w", "stop") if how == "stop" else two.terminate("w"))
    await eventually(lambda: door.turned_away)
    if how == "stop":
        await handle.signal("end")
        assert await handle.result() == "stopped"


async def test_N3_one_of_several_activities_that_another_nodes_turn_ended_is_told(cluster: Cluster) -> None:
    door, other = Door(), Door()

    @activity(name="other", retry=ONCE)
    async def goes_on() -> str:
        await other.wait()
        return "went on"

    @workflow
    async def both(ctx: Context) -> Any:
        staying, leaving = ctx.run(goes_on), ctx.run("slow")
        await ctx.wait_for_signal("stop")
        leaving.cancel()
        return await staying

    one = await cluster.open("one", both, make_slow(door), goes_on)
    two = await cluster.open("two", both, make_slow(door), goes_on)
    handle = await one.start(both, workflow_id="w")
    await eventually(lambda: door.inside and other.inside)
    await two.signal_workflow("w", "stop")

    await eventually(lambda: door.turned_away)
    assert other.turned_away == []
    other.open()
    assert await handle.result() == "went on"
    assert len(other.came) == 1


# --- nodes that go ---


async def test_N3_activity_of_a_taker_that_dies_is_begun_anew_and_the_late_result_refused(cluster: Cluster) -> None:
    doors = [Door(), Door()]
    one = await cluster.open("one", waits, **MORTAL)
    handle = await one.start(waits, workflow_id="w")
    await cluster.open("two", make_slow(doors[0]), **MORTAL)
    await eventually(lambda: doors[0].inside)
    await cluster.kill("two")
    await cluster.open("three", make_slow(doors[1]), **MORTAL)

    await eventually(lambda: doors[1].inside)
    assert doors[1].came == [2], "the second attempt"
    assert from_row(await cluster.find_row("w")).attempt_of(1).lost == 1
    doors[1].open()
    assert await handle.result() == "done"


async def test_A5_taker_that_shuts_down_hands_back_what_it_has_taken(cluster: Cluster) -> None:
    doors = [Door(), Door()]
    one = await cluster.open("one", waits)
    handle = await one.start(waits, workflow_id="w")
    await cluster.open("two", make_slow(doors[0]))
    await eventually(lambda: doors[0].inside)
    await cluster.open("three", make_slow(doors[1]))
    await cluster.shut_down("two")

    await eventually(lambda: doors[1].inside)
    assert from_row(await cluster.find_row("w")).attempt_of(1).lost == 0, "nothing was lost with a process"
    doors[1].open()
    assert await handle.result() == "done"


async def test_N1_result_of_a_taker_is_kept_while_nobody_has_the_workflow(cluster: Cluster) -> None:
    door = Door()
    one = await cluster.open("one", waits)
    await one.start(waits, workflow_id="w")
    two = await cluster.open("two", make_slow(door))
    await eventually(lambda: door.inside)
    await cluster.shut_down("one")
    door.open()
    await eventually(lambda: door.left)
    await eventually(lambda: has_inbox(two, 1))

    three = await cluster.open("three", waits)
    assert await three.handle("w").result() == "done"
    assert len(door.came) == 1


async def has_inbox(engine: Any, count: int) -> bool:
    return bool((await engine.store.count()).inbox == count)


# --- what goes wrong at the store ---


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


@pytest.mark.parametrize("action", [FaultAction.FAIL, FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN])
async def test_X5_offer_that_may_have_been_taken_runs_once(nodes: Nodes, action: FaultAction) -> None:
    one = await nodes.open("one", [one_by_one])
    handle = await one.start(one_by_one, 1)
    nodes.faults["two"] = once(Point.OFFERS_COMMIT, action)
    await nodes.open("two", [], [double])
    await nodes.clock.advance(seconds=5)
    await nodes.clock.settle()

    assert await handle.result() == [0]
    assert len(RAN) == 1


async def test_lost_wake_up_delays_an_offer_by_a_heartbeat_at_most(nodes: Nodes) -> None:
    one = await nodes.open("one", [one_by_one])
    await nodes.open("two", [], [double])
    nodes.faults["two"] = lambda point, _node: FaultAction.LOSE if point == Point.WAKE else FaultAction.NONE
    handle = await one.start(one_by_one, 1)
    await nodes.clock.settle()
    assert RAN == []

    await nodes.clock.advance(seconds=2)
    await nodes.clock.settle()
    assert RAN == [(0, 1)]
    await nodes.clock.advance(seconds=2)
    assert await handle.result() == [0]


# --- one process ---


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_nothing_is_offered_on_a_store_of_ones_own(open_engine: OpenEngine) -> None:
    @workflow
    async def asks(ctx: Context) -> Any:
        return await ctx.run("double", 1)

    @activity(name="crowd", max_concurrent=1, queue="elsewhere")
    async def crowd() -> int:
        return 1

    @workflow
    async def crowded(ctx: Context) -> int:
        return sum(await asyncio.gather(*(ctx.run(crowd) for _ in range(20))))

    engine = await open_engine(asks, crowded, crowd)

    with pytest.raises(WorkflowFailed, match="UnknownActivity"):
        await (await engine.start(asks)).result()
    assert await (await engine.start(crowded)).result() == 20
    assert await engine.store.take_offers("looker", ["default\tdouble", "elsewhere\tcrowd"], 10) == []
