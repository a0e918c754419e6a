"""The world outside of the engine: a ledger in which activities note that they really ran.

The ledger is a plain file that Holdfast knows nothing about. Each note is on disk before the activity goes on, so it tells
what happened even if the process is killed the next moment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from holdfast.engine.activities.attempt import activity_info

FILE = "ledger.jsonl"


class Phase(StrEnum):
    """How far a run of an activity's function got."""

    BEGUN = "begun"
    FAILED = "failed"
    DONE = "done"


class Entry(msgspec.Struct, frozen=True):
    """One note: which function ran, for what, in which attempt. `key` is the same for all attempts of one activity."""

    key: str
    activity: str
    subject: str
    attempt: int
    phase: Phase
    pid: int


class SideEffectLedger:
    """Appends notes, each forced to disk; reads them all."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def note(self, phase: Phase, subject: str) -> int:
        """Note that the activity running here got this far; gives its attempt."""
        info = activity_info()
        entry = Entry(info.idempotency_key, info.activity, subject, info.attempt, phase, os.getpid())
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(entry) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return info.attempt

    def read(self) -> list[Entry]:
        """Everything noted so far, in order."""
        if not self.path.exists():
            return []
        return [msgspec.json.decode(line, type=Entry) for line in self.path.read_bytes().splitlines()]


def find_unfinished(entries: Sequence[Entry]) -> list[Entry]:
    """Runs that began, and neither failed nor got done."""
    ended = {(entry.key, entry.attempt) for entry in entries if entry.phase is not Phase.BEGUN}
    return [entry for entry in entries if entry.phase is Phase.BEGUN and (entry.key, entry.attempt) not in ended]
