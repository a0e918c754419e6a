"""How a client reaches a database: directly, or through the process that owns it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast.client.direct import DirectVerbs
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.verbs import Verbs

T = TypeVar("T")

Ask: TypeAlias = Callable[[Verbs, str | None, Duration | None], Awaitable[T]]
"""A call that a turn of an execution answers. It gets the request id, and how long the answer may take."""


class Reach(Protocol):
    """Takes the calls of a client to a database, and whoever is there."""

    async def open(self) -> None:
        """See that there is a database, and connect to it where that is of use. Raises StoreError."""
        ...

    async def close(self) -> None:
        """Disconnect, after what was asked is done."""
        ...

    async def read(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """Make a call that changes nothing."""
        ...

    async def watch(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """Make a call that changes nothing and may take long: closing does not wait for it."""
        ...

    async def write(self, call: Callable[[Verbs], Awaitable[T]], *, is_safe: bool) -> T:
        """Make a call that changes something. `is_safe`: making it twice does no harm."""
        ...

    async def ask(self, call: Ask[T], *, key: str | None, timeout: Duration | None = None) -> T:
        """Make a call that a turn of an execution answers. `key` makes its repetition safe. Raises AnswerTimedOut."""
        ...

    async def wait(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait for the end of an execution; its result, decoded as `hint`."""
        ...


class DirectReach:
    """Calls that go to a shared database directly."""

    def __init__(self, url: str, codec: PayloadCodec | None = None) -> None:
        self._verbs = DirectVerbs(url, codec=codec)

    async def open(self) -> None:
        """Connect to the database. Raises StoreError."""
        await self._verbs.open()

    async def close(self) -> None:
        """Disconnect, after what was asked is done."""
        await self._verbs.shutdown()

    async def read(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """Make a call that changes nothing."""
        return await call(self._verbs)

    async def watch(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """Make a call that changes nothing and may take long."""
        return await call(self._verbs)

    async def write(self, call: Callable[[Verbs], Awaitable[T]], *, is_safe: bool) -> T:
        """Make a call that changes something. Which outcomes are unknown, the store says."""
        return await call(self._verbs)

    async def ask(self, call: Ask[T], *, key: str | None, timeout: Duration | None = None) -> T:
        """Make a call that a turn of an execution answers, on whichever node."""
        return await call(self._verbs, key, timeout)

    async def wait(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait for the end of an execution; its result, decoded as `hint`."""
        return await self._verbs.wait_for_result(target, hint, org=org, timeout=timeout, on_blocked=on_blocked)


def is_keyed(options: Mapping[str, Any]) -> bool:
    """Whether a call carries what makes its repetition safe."""
    return find_key(options) is not None


def find_key(options: Mapping[str, Any]) -> str | None:
    """What makes the repetition of a call safe: its request id, or the idempotency key of its start."""
    request_id: str | None = options.get("request_id")
    return options.get("idempotency_key") if request_id is None else request_id
