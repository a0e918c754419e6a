"""What a turn meets that people should hear of: values, of which the log tells once the turn is committed."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND, Micros

FIRST_REPORTED: Final = 5
"""The number of the failure from which on an activity counts as retrying for long; then at each doubling of it."""
LONG_RETRYING: Final[Micros] = 10 * 60 * SECOND
"""Failures before that count too, once an activity has been open for so long: its policy pauses for long."""


class ActivityAbout(msgspec.Struct, frozen=True, gc=False):
    """Which attempt of which activity something happened to."""

    name: str
    queue: str
    attempt: int


class ActivityEnded(msgspec.Struct, frozen=True, gc=False):
    """An activity failed or timed out for good."""

    about: ActivityAbout
    failure: Failure
    is_lost: bool = False
    """Whether it must not run again, had begun, and nobody knows how it ended."""


class AttemptFailed(msgspec.Struct, frozen=True, gc=False):
    """An attempt of an activity failed or timed out, and another follows."""

    about: ActivityAbout
    failure: Failure
    failures: int
    """How many attempts have failed, this one included."""
    pause: Micros
    """How long until the next attempt."""
    open_for: Micros
    """How long ago the activity was asked for."""

    @property
    def lasts_long(self) -> bool:
        """Whether the log should say that it has been retrying for long: seldom, however many failures there are."""
        if self.failures < FIRST_REPORTED:
            return self.open_for >= LONG_RETRYING
        factor, rest = divmod(self.failures, FIRST_REPORTED)
        return not rest and not factor & (factor - 1)


class AttemptTakenOver(msgspec.Struct, frozen=True, gc=False):
    """A node ran an activity and is gone, or left: a new attempt begins."""

    about: ActivityAbout
    former: str
    has_left: bool
    """Whether that node left cleanly."""


class LetterDiscarded(msgspec.Struct, frozen=True, gc=False):
    """An envelope could not be handled, and the engine keeps no dead letters."""

    reason: str


Trouble: TypeAlias = ActivityEnded | AttemptFailed | AttemptTakenOver | LetterDiscarded
