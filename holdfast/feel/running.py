"""One evaluation: what it may use up, what it warns of, where its time and its randomness come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from holdfast.errors import FeelError, FeelLimitExceeded
from holdfast.feel.spots import Spot

MOST_STEPS: Final = 1_000_000
"""Steps of one evaluation: an iteration, an item that a function looks at, a call of a function. One is about 1 µs."""
MOST_ITEMS: Final = 1_000_000
"""Values that are written out as JSON."""
MOST_CHARACTERS: Final = 10_000_000
"""Characters of one string."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of all strings, lists and contexts that one evaluation makes, about; what it throws away counts too."""
MOST_WARNINGS: Final = 1_000
"""Warnings that one evaluation keeps."""
LONGEST_WARNING: Final = 1_000
"""Characters of one of them."""
SHORT: Final = 100
"""Strings of that many characters count by these alone, whatever they are."""
LONG: Final = 1_000
"""Strings that are longer cost steps when they are compared."""
DEEPEST: Final = 100
"""Calls of functions inside each other."""
MOST_HINTS: Final = 20
"""Warnings of one evaluation that look for names near one that is not there."""


@dataclass(frozen=True, slots=True)
class FeelWarning:
    """Why a part of an expression became null, for a person to read."""

    message: str
    spot: Spot | None = field(default=None, repr=False, compare=False)
    """Where the part begins; None where the reason is no part of an expression."""

    def __str__(self) -> str:
        return self.message

    @property
    def offset(self) -> int | None:
        """How many characters of the expression stand before the part."""
        return None if self.spot is None else self.spot.offset

    @property
    def line(self) -> int | None:
        """The line in which the part begins, from 1 on."""
        return None if self.spot is None else self.spot.line

    @property
    def column(self) -> int | None:
        """The column at which the part begins, from 1 on."""
        return None if self.spot is None else self.spot.column


class Fail(Exception):
    """What was asked for has no value. Whoever calls a function makes it null and a warning with this message."""


class Run:
    """One evaluation: the steps that are left to it, its warnings, its clock and its random source."""

    __slots__ = (
        "_hints",
        "calling",
        "clock",
        "depth",
        "limit",
        "patterns",
        "random",
        "room",
        "room_limit",
        "steps",
        "taken_in",
        "warnings",
    )

    def __init__(
        self,
        warnings: list[FeelWarning] | None = None,
        clock: Callable[[], datetime] | None = None,
        random: Callable[[int], int] | None = None,
        steps: int = MOST_STEPS,
        room: int = MOST_BYTES,
    ) -> None:
        self.warnings = warnings
        self.clock = clock
        self.random = random
        self.steps = self.limit = steps
        self.room = self.room_limit = room
        self.depth = 0
        self._hints = MOST_HINTS
        self.calling: Spot | None = None
        """The call that was last made, for functions that are called as values."""
        self.taken_in: dict[int, object] = {}
        """Lists and contexts of the context that was given, by their Python ids, as FEEL has them."""
        self.patterns: set[tuple[str, str]] = set()
        """Regular expressions, with their flags, that this evaluation has paid for."""

    def spend(self, steps: int, size: int = 0) -> None:
        """Count work that grows with its input, and bytes of what it makes, before it is done. Raises FeelLimitExceeded."""
        self.steps -= steps
        self.room -= size
        if self.steps < 0 or self.room < 0:
            self._refuse()

    def _refuse(self) -> None:
        if self.steps < 0:
            raise FeelLimitExceeded(
                f"Expected the expression to come to an end, but it took all the steps that it may take ({self.limit:,}). "
                "Let it work on less, or give it a higher max_steps."
            )
        raise FeelLimitExceeded(
            f"Expected the expression to make at most {self.room_limit:,} bytes of values, but it makes more. "
            "Let it make less, or give it a higher max_bytes."
        )

    def check_text(self, characters: int, *parts: str) -> None:
        """Before a string of that many characters is made of others. Raises FeelLimitExceeded."""
        if characters > MOST_CHARACTERS:
            raise FeelLimitExceeded(
                f"Expected a string of at most {MOST_CHARACTERS:,} characters, but it would have {characters:,}. Make less."
            )
        if characters <= SHORT:
            self.room -= 50 + 4 * characters
            if self.room < 0:
                self._refuse()
            return
        width = 1 if all(map(str.isascii, parts)) else 4
        self.spend(characters >> 10, 50 + characters * width)

    def check_compared(self, one: str, other: str) -> None:
        """Before two strings are compared that may be long: all characters are looked at, if they are the same at first."""
        self.spend(min(len(one), len(other)) >> 10)

    def warn(self, message: str, spot: Spot | None = None) -> None:
        """Keep the reason why something became null, and where, if the caller wants warnings."""
        if self.warnings is not None and len(self.warnings) < MOST_WARNINGS:
            short = message if len(message) <= LONGEST_WARNING else f"{message[:LONGEST_WARNING]}…"
            self.warnings.append(FeelWarning(short, spot))

    def may_hint(self) -> bool:
        """Whether a warning may say which name is near: not in all of many, as to find it takes a while."""
        self._hints -= 1
        return self.warnings is not None and self._hints >= 0

    def now(self) -> datetime:
        """The time that was given. Raises Fail if none was, FeelError if it is in no time zone."""
        if self.clock is None:
            raise Fail("there is no clock: give one by clock=…")
        now = self.clock()
        if not isinstance(now, datetime) or now.utcoffset() is None:
            raise FeelError(
                f"Expected the clock to give a datetime with a time zone, but it gives {now!r}. "
                "Give one that has it, for instance by datetime.now(UTC)."
            )
        return now

    def random_bits(self, bits: int) -> int:
        """From the source that was given. Raises Fail if none was."""
        if self.random is None:
            raise Fail("there is no source of randomness: give one by random=…")
        return self.random(bits)
