"""Databases that cannot be used as asked."""

from __future__ import annotations

from enum import Enum, auto

from holdfast.errors.roots import HoldfastError


class StoreError(HoldfastError):
    """The database cannot be used as asked."""


class StoreOwned(StoreError):
    """Another process owns the database file."""


class NotOurDatabase(StoreError):
    """The file is no Holdfast database."""


class DatabaseNotFound(NotOurDatabase):
    """There is no database at that place yet: no file, an empty one, or a database in which no engine made tables."""


class NewerDatabase(StoreError):
    """A newer Holdfast wrote the database."""


class OlderDatabase(StoreError):
    """An older Holdfast wrote the database, and it is not to be upgraded here."""


class StoreMoved(StoreError):
    """All that the database holds was moved elsewhere, or a transfer is under way."""


class CorruptStore(StoreError):
    """What is stored contradicts itself or cannot be decoded."""


class NewerFormat(StoreError):
    """A newer Holdfast wrote what is stored; this one cannot read it, and leaves it alone."""


class CodecMissing(NewerFormat):
    """Values of an execution are encoded, and this engine's codec cannot decode them: it leaves the execution alone."""


class StoreFault(Enum):
    """What a StoreUnavailable says about the work that was not taken."""

    OUT_OF_REACH = auto()
    """The connection broke, or the database takes no writes at all: mostly that has nothing to do with the work."""
    SHORTAGE = auto()
    """The disk is full, or memory is short. A smaller work may still fit."""
    TIMED_OUT = auto()
    """The database was there, and gave this very work up because it took too long."""
    CODEC = auto()
    """The codec raised or did not answer: nobody is to blame for that but the codec, whatever it was asked for."""


class StoreUnavailable(StoreError):
    """The database cannot take a write now: read-only, full, out of reach, too slow, or its codec is away (`fault`)."""

    def __init__(self, message: str, *, fault: StoreFault = StoreFault.OUT_OF_REACH) -> None:
        super().__init__(message)
        self.fault = fault


class OutcomeUnknown(StoreUnavailable):
    """The connection broke during a commit: it may or may not have happened."""
