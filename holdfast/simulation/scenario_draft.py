"""A scenario while it is made: the random source of its seed, and the calls of its clients so far."""

from __future__ import annotations

from random import Random
from typing import Final

from holdfast.simulation.plans import AnyCall

MAILBOX: Final = "mailbox"
"""The workflow id of the program that other programs signal."""
MAIL: Final = "mail"
"""The name of those signals."""


class ScenarioDraft:
    """What the generators of a scenario and of its programs share; each of them draws from `random` and adds to the rest."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size
        self.random = Random(f"holdfast scenario {seed}")
        self.mail = 0
        """How many signals programs send to the mailbox."""
        self.clients: list[list[AnyCall]] = [[] for _ in range(2 + (size > 2))]

    def draw_pause(self) -> int:
        """Draw the milliseconds that a client waits before a call."""
        return self.random.choice([0, 0, 1, 20, 400, 3_000])
