"""How the verbs of a socket reach the owner of a database: what their topics share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class SocketCalls:
    """Calls verbs of an owner. `SocketVerbs` says how; the classes of single topics use it."""

    async def _call(
        self,
        verb: str,
        kind: type[T],
        positional: list[Any],
        named: Mapping[str, Any],
        inputs: Any = None,
        *,
        is_bound: bool = False,
    ) -> T:
        """Call a verb of the owner, and read its answer as `kind`."""
        raise NotImplementedError
