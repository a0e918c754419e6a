"""How a client reaches a database: directly, or through the process that owns it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from holdfast.client.direct import DirectVerbs
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.verbs import Verbs

T = TypeVar("T")


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

    async def write(self, call: Callable[[Verbs], Awaitable[T]], *, is_safe: bool) -> T:
        """Make a call that changes something. `is_safe`: making it twice does no harm."""
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

    async def write(self, call: Callable[[Verbs], Awaitable[T]], *, is_safe: bool) -> T:
        """Make a call that changes something. Which outcomes are unknown, the store says."""
        return await call(self._verbs)

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
    return options.get("request_id") is not None or options.get("idempotency_key") is not None
