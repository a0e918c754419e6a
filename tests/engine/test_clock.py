"""T6: alarms follow a wall clock that is set forward or back, or that goes on while the machine sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast.core.instants import SECOND
from holdfast.engine.clock import RECHECK, LoopClock, SystemClock
from holdfast.simulation.loop import SimulationLoop

HOUR = 3600 * SECOND
START = 1_000 * HOUR


class Machine:
    """A machine in virtual time. Its wall clock can be set, which to the loop is the same as a sleep of the machine."""

    def __init__(self) -> None:
        self.loop = SimulationLoop(START, 100_000)  # type: ignore[abstract]  # what nothing here calls is left out
        self.ahead = 0
        self.clock = MachineClock(self)
        self.rung: list[float] = []

    def ring(self) -> None:
        """Note when the alarm rings, in seconds since the beginning."""
        self.rung.append((self.loop.now - START) / SECOND)

    def play(
        self, arm: Callable[[LoopClock], object], *settings: tuple[float, int], length: float = 10_000.0
    ) -> list[float]:
        """Arm an alarm, set the clock ahead by so much at those seconds, and give when the alarm rang."""

        async def run() -> None:
            arm(self.clock)
            for at, ahead in settings:
                await asyncio.sleep(at - (self.loop.now - START) / SECOND)
                self.ahead = ahead
            await asyncio.sleep(length - (self.loop.now - START) / SECOND)

        self.loop.run(run())
        return self.rung


class MachineClock(SystemClock):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def now(self) -> int:
        return self._machine.loop.now + self._machine.ahead


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_T6_clock_is_read_often_enough() -> None:
    assert RECHECK < 30 * SECOND


@pytest.mark.parametrize("seconds", [0.001, 2.0, 10.0, 10.5, 5_000.0])
def test_T6_alarm_rings_on_time_if_nobody_sets_the_clock(machine: Machine, seconds: float) -> None:
    assert machine.play(lambda clock: clock.call_at(START + round(seconds * SECOND), machine.ring)) == [seconds]


def test_alarm_that_is_cancelled_never_rings(machine: Machine) -> None:
    async def run() -> None:
        alarm = machine.clock.call_at(START + HOUR, machine.ring)
        await asyncio.sleep(100)
        alarm.cancel()
        await asyncio.sleep(10_000)

    machine.loop.run(run())

    assert machine.rung == []


def test_T6_alarm_rings_soon_after_the_clock_was_set_forward_or_the_machine_slept(machine: Machine) -> None:
    (rung,) = machine.play(lambda clock: clock.call_at(START + HOUR, machine.ring), (5, HOUR))

    assert 5 <= rung <= 5 + RECHECK / SECOND


def test_T6_alarm_never_rings_before_the_clock_shows_its_time(machine: Machine) -> None:
    assert machine.play(lambda clock: clock.call_at(START + 2 * SECOND, machine.ring), (1, -HOUR)) == [3602]


@pytest.mark.parametrize("ahead", [-HOUR, HOUR, -24 * HOUR])
def test_T6_alarm_rings_soon_after_the_clock_was_corrected(machine: Machine, ahead: int) -> None:
    when = START + 60 * SECOND + max(0, ahead)

    (rung,) = machine.play(lambda clock: clock.call_at(when, machine.ring), (1, ahead), (100, max(0, ahead)))

    assert 60 <= rung <= 100 + RECHECK / SECOND


@pytest.mark.parametrize("seconds", [0.5, 10.0, 60.0, 3_000.0])
@pytest.mark.parametrize("ahead", [0, -HOUR])
def test_T6_length_of_time_is_over_on_time_though_the_clock_was_set_back(
    machine: Machine, seconds: float, ahead: int
) -> None:
    assert machine.play(lambda clock: clock.call_after(round(seconds * SECOND), machine.ring), (0.1, ahead)) == [seconds]


def test_T6_length_of_time_is_over_soon_after_the_machine_slept_for_longer(machine: Machine) -> None:
    (rung,) = machine.play(lambda clock: clock.call_after(HOUR, machine.ring), (5, 8 * HOUR))

    assert 5 <= rung <= 5 + RECHECK / SECOND
