"""What `wait_any` takes and gives: waits as values, which begin when they are awaited, and the first that is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

import msgspec

from holdfast.core.instants import Duration
from holdfast.core.publications import SubscriptionKind
from holdfast.errors import InvalidArguments

T_co = TypeVar("T_co", covariant=True)
NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})


class AnyWait(msgspec.Struct, Generic[T_co], frozen=True):
    """For `wait_any`: what begins when it is awaited there, and gives a value of some type. Alone it cannot be awaited."""

    if not TYPE_CHECKING:  # type checkers refuse to await it, as they should

        def __await__(self) -> NoReturn:
            made, alone = self._name_calls()
            raise InvalidArguments(
                f"Expected {made} to be given to ctx.wait_any, but it is awaited by itself. "
                f"Write await ctx.wait_any({made}), or await {alone} to wait for it alone."
            )

    def _name_calls(self) -> tuple[str, str]:
        """The call that made it, and the one that waits for the same alone."""
        raise NotImplementedError


class SignalWait(AnyWait[T_co], frozen=True):
    """For `wait_any`: the next signal of a name."""

    name: str
    type: Any = Any

    def _name_calls(self) -> tuple[str, str]:
        return f"ctx.signal({self.name!r}, …)", f"ctx.wait_for_signal({self.name!r}, …)"


class TimerWait(AnyWait[datetime], frozen=True):
    """For `wait_any`: a length of time, made by `ctx.timer`. Its value is when it fired."""

    duration: Duration
    name: str = ""

    def _name_calls(self) -> tuple[str, str]:
        return "ctx.timer(…)", "ctx.sleep(…)"


class PublicationWait(AnyWait[T_co], frozen=True):
    """For `wait_any`: a message, an event or a broadcast signal, made by `ctx.message`, `ctx.event` or `ctx.broadcast`."""

    kind: SubscriptionKind
    name: str
    type: Any = Any
    key: str = ""
    """The correlation key of a message."""
    where: Mapping[str, str] = NO_FIELDS
    """Fields that an event must have, each as canonical JSON text."""

    def _name_calls(self) -> tuple[str, str]:
        given = f"{self.type.__name__}, …" if self.kind is SubscriptionKind.EVENT else f"{self.name!r}, …"
        return f"ctx.{self.kind}({given})", f"ctx.wait_for_{self.kind}({given})"

    def describe(self) -> str:
        """What is awaited, in words: kind, name and key."""
        if self.kind is SubscriptionKind.MESSAGE:
            return f"message '{self.name}' with key '{self.key}'"
        return f"{'event' if self.kind is SubscriptionKind.EVENT else 'broadcast signal'} '{self.name}'"


class Winner(msgspec.Struct, Generic[T_co], frozen=True):
    """Which of the things awaited by `wait_any` came first (its position), and its value."""

    index: int
    value: T_co
