"""What is to happen to the traffic of a proxy, and when."""

from __future__ import annotations

import asyncio
import threading
from enum import Enum

from tests.postgres.wire import Message, Predicate


class Harm(Enum):
    """What a trap does."""

    CUT_BEFORE = "the message does not reach the server"
    CUT_AFTER = "the answer does not reach the client"
    HOLD_BEFORE = "nothing gets through any more"


class Trap:
    """Waits for one message, or for a number of bytes."""

    def __init__(self) -> None:
        self._has_sprung = threading.Event()

    @property
    def has_sprung(self) -> bool:
        return self._has_sprung.is_set()

    def spring(self) -> None:
        self._has_sprung.set()

    def wait(self, timeout: float = 10) -> None:
        """Return when it happened. Blocks the thread."""
        if not self._has_sprung.wait(timeout):
            raise TimeoutError(f"Expected the proxy to see what it waits for within {timeout:g} s, but it did not.")


class MessageTrap(Trap):
    """For the next message that fits."""

    def __init__(self, harm: Harm, fits: Predicate) -> None:
        super().__init__()
        self.harm = harm
        self.fits = fits


class ByteTrap(Trap):
    """For the byte after so many more."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._left = count

    def take(self, data: bytes) -> bytes:
        """As much as may go through."""
        taken = data[: self._left]
        self._left -= len(taken)
        return taken

    def is_full(self) -> bool:
        return self._left == 0


class Rules:
    """All that holds for a proxy's connections now. Belongs to the proxy's loop."""

    def __init__(self) -> None:
        self.flow = asyncio.Event()
        self.flow.set()
        self.traps: list[MessageTrap] = []
        self.client_limit: ByteTrap | None = None
        self.server_limit: ByteTrap | None = None

    def take_trap(self, message: Message) -> MessageTrap | None:
        """The first trap that the message fits; it is used up."""
        for trap in self.traps:
            if trap.fits(message):
                self.traps.remove(trap)
                return trap
        return None
