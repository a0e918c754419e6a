"""The virtual clock by itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.instants import SECOND
from holdfast.errors import InvalidDuration, InvalidTime
from holdfast.testing import VirtualClock

START = datetime(2024, 2, 28, tzinfo=UTC)


async def test_time_stands_still_until_it_is_driven() -> None:
    clock = VirtualClock(START)

    await asyncio.sleep(0.001)

    assert clock.present == START


async def test_time_begins_at_the_same_moment_in_every_run() -> None:
    assert VirtualClock().present == datetime(2030, 1, 1, tzinfo=UTC)


async def test_start_of_time_needs_a_zone() -> None:
    with pytest.raises(InvalidTime, match="time zone"):
        VirtualClock(datetime(2024, 2, 28))  # noqa: DTZ001 - that is what is refused


async def test_advance_takes_parts_timedeltas_and_seconds() -> None:
    clock = VirtualClock(START)

    await clock.advance(days=1, hours=2, minutes=3, seconds=4)
    await clock.advance(timedelta(weeks=1))
    await clock.advance(0.5)

    assert clock.present == START + timedelta(days=8, hours=2, minutes=3, seconds=4.5)


async def test_advance_to_a_moment() -> None:
    clock = VirtualClock(START)

    await clock.advance_to(datetime(2024, 3, 1, tzinfo=UTC))

    assert clock.present == START + timedelta(days=2)


async def test_time_does_not_go_back() -> None:
    clock = VirtualClock(START)

    with pytest.raises(InvalidDuration):
        await clock.advance(seconds=-1)
    with pytest.raises(InvalidTime, match="does not go back"):
        await clock.advance_to(START - timedelta(seconds=1))

    assert clock.present == START


async def test_alarms_ring_in_due_order_each_at_its_moment() -> None:
    clock = VirtualClock(START)
    rung: list[tuple[str, datetime]] = []
    for name, seconds in (("c", 30), ("a", 10), ("b", 20)):
        clock.call_at(clock.now() + seconds * SECOND, lambda name=name: rung.append((name, clock.present)))  # type: ignore[misc]

    count = await clock.advance(minutes=1)

    assert rung == [(name, START + timedelta(seconds=seconds)) for name, seconds in (("a", 10), ("b", 20), ("c", 30))]
    assert count == 3


async def test_alarms_of_one_moment_ring_in_the_order_in_which_they_were_set() -> None:
    clock = VirtualClock(START)
    rung: list[int] = []
    for number in range(5):
        clock.call_at(clock.now() + SECOND, lambda number=number: rung.append(number))  # type: ignore[misc]

    await clock.advance(1)

    assert rung == [0, 1, 2, 3, 4]


async def test_an_alarm_rings_at_its_very_instant_and_not_before() -> None:
    clock = VirtualClock(START)
    clock.call_at(clock.now() + SECOND, lambda: None)

    before = await clock.advance(0.999999)
    after = await clock.advance(0.000001)

    assert (before, after) == (0, 1)


async def test_an_alarm_may_set_another_that_rings_on_the_same_way() -> None:
    clock = VirtualClock(START)
    rung: list[datetime] = []

    def ring() -> None:
        rung.append(clock.present)
        clock.call_at(clock.now() + SECOND, ring)

    clock.call_at(clock.now() + SECOND, ring)
    await clock.advance(3)

    assert [(at - START).total_seconds() for at in rung] == [1, 2, 3]
    assert clock.next_due == START + timedelta(seconds=4)


async def test_a_cancelled_alarm_does_not_ring() -> None:
    clock = VirtualClock(START)
    alarm = clock.call_at(clock.now() + SECOND, lambda: pytest.fail("it rang"))

    alarm.cancel()

    assert clock.next_due is None
    assert await clock.advance(2) == 0


async def test_an_alarm_that_is_due_already_rings_without_time_moving() -> None:
    clock = VirtualClock(START)
    rung: list[datetime] = []

    clock.call_at(clock.now(), lambda: rung.append(clock.present))
    clock.call_at(clock.now() - SECOND, lambda: rung.append(clock.present)).cancel()
    await clock.settle()

    assert rung == [START]


async def test_what_an_alarm_raises_reaches_who_moves_time() -> None:
    clock = VirtualClock(START)

    def ring() -> None:
        raise ZeroDivisionError

    clock.call_at(clock.now() + SECOND, ring)

    with pytest.raises(ZeroDivisionError):
        await clock.advance(2)


async def test_running_until_a_future_is_done_jumps_no_further() -> None:
    clock = VirtualClock(START)
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    clock.call_at(clock.now() + 3600 * SECOND, lambda: done.set_result("rung"))
    clock.call_at(clock.now() + 7200 * SECOND, lambda: pytest.fail("too far"))

    assert await clock.run_until(done) == "rung"

    await clock.settle()
    assert clock.present == START + timedelta(hours=1)


async def test_what_an_alarm_raises_reaches_who_runs_until_a_future_is_done() -> None:
    clock = VirtualClock(START)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ring() -> None:
        raise ZeroDivisionError

    clock.call_at(clock.now() + SECOND, ring)

    with pytest.raises(ZeroDivisionError):
        await clock.run_until(never)
