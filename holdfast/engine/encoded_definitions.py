"""Deployed definitions of a store behind a codec: what start timers give to executions goes through it.

Definitions and their content are no values of users' programs: they stay as they are, as code does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.store.definitions import Definitions, DeploymentWrite
from holdfast.store.schedules import ScheduleRow


class EncodedDefinitions:
    """The definitions of a store behind a codec: what is not here goes to the store's own."""

    def __init__(
        self, bare: Definitions, encode: Callable[[Sequence[ScheduleRow], str], Awaitable[list[ScheduleRow]]]
    ) -> None:
        self._bare = bare
        self._encode = encode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bare, name)

    async def deploy(self, write: DeploymentWrite, expected: int) -> int | None:
        """As `Definitions.deploy`, with the payloads of its schedules encoded."""
        if write.schedules:
            write = replace(write, schedules=await self._encode(list(write.schedules), write.org))
        return await self._bare.deploy(write, expected)
