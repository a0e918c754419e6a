"""What `wait_any` takes and gives: waits as values, which begin when they are awaited, and the first that is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import msgspec

from holdfast.core.instants import Duration
from holdfast.core.publications import SubscriptionKind

T_co = TypeVar("T_co", covariant=True)
NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})


class AnyWait(msgspec.Struct, Generic[T_co], frozen=True):
    """For `wait_any`: what begins when it is awaited, and gives a value of some type."""


class SignalWait(AnyWait[T_co], frozen=True):
    """For `wait_any`: the next signal of a name."""

    name: str
    type: Any = Any


class TimerWait(AnyWait[datetime], frozen=True):
    """For `wait_any`: a length of time, made by `ctx.timer`. Its value is when it fired."""

    duration: Duration
    name: str = ""


class PublicationWait(AnyWait[T_co], frozen=True):
    """For `wait_any`: a message, an event or a broadcast signal, made by `ctx.message`, `ctx.event` or `ctx.broadcast`."""

    kind: SubscriptionKind
    name: str
    type: Any = Any
    key: str = ""
    """The correlation key of a message."""
    where: Mapping[str, str] = NO_FIELDS
    """Fields that an event must have, each as canonical JSON text."""

    def describe(self) -> str:
        """What is awaited, in words: kind, name and key."""
        if self.kind is SubscriptionKind.MESSAGE:
            return f"message '{self.name}' with key '{self.key}'"
        return f"{'event' if self.kind is SubscriptionKind.EVENT else 'broadcast signal'} '{self.name}'"


class Winner(msgspec.Struct, Generic[T_co], frozen=True):
    """Which of the things awaited by `wait_any` came first (its position), and its value."""

    index: int
    value: T_co
