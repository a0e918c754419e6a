"""Deadlines of executions that are left out of claims: they time out nonetheless, for which none of their code is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from holdfast.core.instants import SECOND

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.engine.clock import Alarm, Clock


class ParkedDeadlines:
    """Rings once for each parked execution, when it times out or is to be looked at. The next claim finds it by `unskip`."""

    def __init__(self, clock: Clock, unskip: Callable[[Collection[str]], None]) -> None:
        self._clock = clock
        self._unskip = unskip
        self._alarms: dict[str, tuple[Instant, Alarm]] = {}

    def note(self, deadlines: Mapping[str, Instant]) -> None:
        """Ring for these executions, unless that is arranged already: what is parked may be so again and again."""
        now = self._clock.now()
        for execution_id, deadline in deadlines.items():
            # One that is due and was parked all the same waits for another node, which tries it: not in circles.
            when = deadline if deadline > now else now + SECOND
            if execution_id in self._alarms:
                earlier, alarm = self._alarms[execution_id]
                if earlier <= when:
                    continue
                alarm.cancel()  # what is parked again is noted again
            self._alarms[execution_id] = when, self._clock.call_at(when, functools.partial(self._ring, execution_id))

    def cancel(self) -> None:
        """Disarm every alarm: the pump ends."""
        for _, alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()

    def _ring(self, execution_id: str) -> None:
        del self._alarms[execution_id]
        self._unskip([execution_id])
