"""A8: code that cancels an activity with cancellation="wait" goes on when the activity's function has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Retry, Status, activity, heartbeat, is_cancelled, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.core import events
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidConfiguration, WorkflowCancelled
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import replay
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually


class Site:
    """What an activity does when it is cancelled: it waits for `clean_up`, then ends as it was told."""

    def __init__(self, end: Callable[[], Any] | None = None, **options: Any) -> None:
        self.began = Door()
        self.clean_up = Door()
        self.end = end

        @activity(name="build", cancellation="wait", **options)
        async def build() -> Any:
            try:
                await self.began.wait()
            except asyncio.CancelledError:
                await self.clean_up.wait()
                if self.end is not None:
                    return self.end()
                raise
            return "built"

        self.build: Activity[..., Any] = build


def make_order(build: Activity[..., Any]) -> Workflow[..., Any]:
    """A workflow that cancels the activity at a signal, and says what it got from that, and when."""

    @workflow(name="order")
    async def order(ctx: Context) -> str:
        task = asyncio.ensure_future(ctx.run(build))
        await ctx.wait_for_signal("stop")
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await ctx.sleep(0.001)
            return "cancelled"
        return "?"

    return order


def fail() -> Any:
    """The clean-up fails."""
    raise ValueError("no")


@pytest.mark.parametrize(
    ("end", "kind"),
    [(None, events.ActivityCancelled), (lambda: "done", events.ActivityCompleted), (fail, events.ActivityFailed)],
)
async def test_A8_code_goes_on_when_the_clean_up_has_ended_however_that_is(
    open_engine: OpenEngine, end: Callable[[], Any] | None, kind: type[Any]
) -> None:
    site = Site(end)
    order = make_order(site.build)
    engine = await open_engine(order, site.build, auto_advance=True)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")
    await eventually(lambda: site.clean_up.came)
    assert await find_events(engine, handle.workflow_id, kind) == []
    assert (await engine.query_status(handle.workflow_id)).status is Status.RUNNING

    site.clean_up.open()

    assert await handle.result() == "cancelled"
    history = await engine.history(handle.workflow_id)
    assert len(await find_events(engine, handle.workflow_id, kind)) == 1
    assert replay(history.to_json(), [order]).events == len(history.events)


async def test_A8_cancelled_workflow_closes_after_the_clean_up(open_engine: OpenEngine) -> None:
    site = Site()

    @workflow
    async def order(ctx: Context) -> Any:
        return await ctx.run(site.build)

    engine = await open_engine(order, site.build)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.cancel()
    await eventually(lambda: site.clean_up.came)
    assert (await engine.query_status(handle.workflow_id)).closed_at is None

    site.clean_up.open()

    with pytest.raises(WorkflowCancelled):
        await handle.result()


async def test_A8_termination_does_not_wait(open_engine: OpenEngine) -> None:
    site = Site()
    order = make_order(site.build)
    engine = await open_engine(order, site.build)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")
    await eventually(lambda: site.clean_up.came)

    await handle.terminate()

    assert (await engine.query_status(handle.workflow_id)).status is Status.TERMINATED
    site.clean_up.open()


async def test_A8_timeout_of_the_attempt_bounds_the_wait(open_engine: OpenEngine) -> None:
    site = Site(start_to_close=30)
    order = make_order(site.build)
    engine = await open_engine(order, site.build)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")
    await eventually(lambda: site.clean_up.came)

    await engine.clock.advance(60)
    await engine.clock.advance(60)

    assert await handle.result() == "cancelled"
    assert len(await find_events(engine, handle.workflow_id, events.ActivityTimedOut)) == 1


async def test_A8_timeout_in_the_workflow_waits_for_the_end_too(open_engine: OpenEngine) -> None:
    site = Site()

    @workflow
    async def order(ctx: Context) -> str:
        try:
            async with asyncio.timeout(10):
                return str(await ctx.run(site.build))
        except TimeoutError:
            return "too late"

    engine = await open_engine(order, site.build)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await engine.clock.advance(11)
    await eventually(lambda: site.clean_up.came)
    assert (await engine.query_status(handle.workflow_id)).closed_at is None
    site.clean_up.open()

    assert await handle.result() == "too late"


async def test_A8_sync_function_is_told_and_awaited(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(cancellation="wait", heartbeat=600)
    def build() -> None:
        door.block()
        assert is_cancelled()
        heartbeat()

    order = make_order(build)
    engine = await open_engine(order, build, auto_advance=True)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await handle.signal("stop")
    await eventually(lambda: find_events(engine, handle.workflow_id, events.ActivityCancelRequested))
    assert await find_events(engine, handle.workflow_id, events.ActivityCancelled) == []

    door.open()

    assert await handle.result() == "cancelled"
    assert len(await find_events(engine, handle.workflow_id, events.ActivityCancelled)) == 1


async def test_A8_wait_ends_with_the_process_and_nothing_is_run_again(open_engine: OpenEngine) -> None:
    site = Site()
    order = make_order(site.build)
    engine = await open_engine(order, site.build, auto_advance=True)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")
    await eventually(lambda: site.clean_up.came)

    await engine.restart()

    assert await engine.wait_for_result(handle.workflow_id) == "cancelled"
    assert len(site.began.came) == 1


async def test_A8_what_waits_for_a_place_or_a_retry_ends_at_once(open_engine: OpenEngine) -> None:
    door, calls = Door(), []

    @activity(cancellation="wait", max_concurrent=1)
    async def held() -> None:
        await door.wait()

    @activity(cancellation="wait", retry=Retry(initial=1000))
    async def flaky() -> None:
        calls.append(1)
        raise ValueError("no")

    @workflow
    async def order(ctx: Context) -> int:
        first = ctx.run(held)
        others = [asyncio.ensure_future(one) for one in (ctx.run(held), ctx.run(flaky))]
        await ctx.wait_for_signal("stop")
        for one in others:
            one.cancel()
        ended = await asyncio.gather(*others, return_exceptions=True)  # while the first holds the only place
        first.cancel()
        await asyncio.wait([first])
        return sum(isinstance(one, asyncio.CancelledError) for one in ended)

    engine = await open_engine(order, held, flaky)
    handle = await engine.start(order)
    await eventually(lambda: door.came and calls)
    await handle.signal("stop")

    assert await handle.result() == 2
    assert (len(door.came), calls) == (1, [1])


async def test_A8_what_was_asked_for_in_the_same_turn_is_taken_back(open_engine: OpenEngine) -> None:
    site = Site()

    @workflow
    async def order(ctx: Context) -> bool:
        future = ctx.run(site.build)
        future.cancel()
        return future.cancelled()

    engine = await open_engine(order, site.build)
    handle = await engine.start(order)

    assert await handle.result() is True
    assert site.began.came == []


async def test_A8_history_keeps_its_way_when_the_option_is_changed(open_engine: OpenEngine) -> None:
    site = Site()
    order = make_order(site.build)
    engine = await open_engine(order, site.build, auto_advance=True)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")
    site.clean_up.open()
    await handle.result()
    waited = (await engine.history(handle.workflow_id)).to_json()
    other = make_order(site.build.with_options(cancellation="abandon"))

    assert replay(waited, [other]).events == len(waited)


# --- several nodes ---


@pytest.mark.parametrize("is_killed", [False, True])
async def test_A8_activity_on_another_node_is_cancelled_and_awaited(cluster: Cluster, is_killed: bool) -> None:
    site = Site()
    order = make_order(site.build)
    a = await cluster.open("a", order, **MORTAL)
    await cluster.open("b", site.build, **MORTAL)
    handle = await a.start(order)
    await eventually(lambda: site.began.came)

    await handle.signal("stop")
    await eventually(lambda: site.clean_up.came)
    assert (await a.query_status(handle.workflow_id)).closed_at is None
    if is_killed:
        await cluster.kill("b")
    else:
        site.clean_up.open()

    assert await handle.result() == "cancelled"
    assert len(site.began.came) == 1


async def test_A8_offer_that_nobody_has_taken_ends_at_once(cluster: Cluster) -> None:
    site = Site()
    order = make_order(site.build)
    a = await cluster.open("a", order)
    handle = await a.start(order)

    await handle.signal("stop")

    assert await handle.result() == "cancelled"
    assert len(await find_events(a, handle.workflow_id, events.ActivityCancelled)) == 1
    await cluster.open("b", site.build)
    assert site.began.came == []


async def test_A8_offers_that_end_at_once_and_those_that_run_are_told_apart(cluster: Cluster) -> None:
    site = Site(max_concurrent=1)

    @workflow
    async def order(ctx: Context) -> int:
        tasks = [asyncio.ensure_future(ctx.run(site.build)) for _ in range(4)]
        await ctx.wait_for_signal("stop")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return sum(task.cancelled() for task in tasks)

    a = await cluster.open("a", order, **MORTAL)
    await cluster.open("b", site.build, **MORTAL)
    handle = await a.start(order)
    await eventually(lambda: site.began.came)

    await handle.signal("stop")

    await eventually(lambda: site.clean_up.came)
    assert len(await find_events(a, handle.workflow_id, events.ActivityCancelled)) == 3
    site.clean_up.open()
    assert await handle.result() == 4
    assert len(site.began.came) == 1


class HeldStore(MemoryStore):
    """A store whose batches wait at the door, once it is shut."""

    door: Door | None = None

    async def begin(self) -> Any:
        """Begin a transaction when the door is open."""
        if self.door is not None:
            await self.door.wait()
        return await super().begin()


async def test_A8_what_is_cancelled_between_its_place_and_its_recorded_beginning_ends() -> None:
    site, database = Site(at_most_once=True), MemoryDatabase()
    order, store = make_order(site.build), HeldStore(database, node="b")
    async with (
        Engine(MemoryStore(database, node="a"), workflows=[order], node="a", lease=30) as a,
        Engine(store, workflows=[order], activities=[site.build], node="b", lease=30),
    ):
        store.door = Door()
        handle = await a.start(order)
        await eventually(lambda: store.door is not None and store.door.came)  # it records that the attempt begins
        await handle.signal("stop")

        store.door.open()

        assert await handle.result(timeout=30) == "cancelled"
    assert site.began.came == []


async def test_A4_node_takes_no_more_offers_than_it_has_places_for(cluster: Cluster) -> None:
    site = Site(max_concurrent=1)

    @workflow
    async def order(ctx: Context) -> None:
        await asyncio.gather(*(ctx.run(site.build) for _ in range(6)))

    a = await cluster.open("a", order)
    handle = await a.start(order)
    await cluster.open("b", site.build)
    await eventually(lambda: site.began.came)

    offers = await cluster.store.list_offers((await a.query_status(handle.workflow_id)).execution_id)

    assert [offer.node for offer in offers] == ["b", None, None, None, None, None]
    site.began.open()
    await handle.result()


def test_unknown_way_to_cancel_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="cancellation=… to be 'abandon' or 'wait', but it is 'later'"):
        activity(cancellation="later")


async def test_abandoned_activity_still_lets_the_code_go_on_at_once(open_engine: OpenEngine) -> None:
    site = Site()
    order = make_order(site.build.with_options(cancellation="abandon"))
    engine = await open_engine(order, site.build, auto_advance=True)
    handle = await engine.start(order)
    await eventually(lambda: site.began.came)
    await handle.signal("stop")

    await eventually(lambda: find_events(engine, handle.workflow_id, events.TimerStarted))
    assert site.clean_up.left == []

    site.clean_up.open()
    assert await handle.result() == "cancelled"
