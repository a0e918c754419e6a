"""A store that refuses what certain executions write, with an error of the test's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast import Engine
from holdfast.store.contract import TurnWrite, UnroutedWrite


class WritesFail:
    """Lets every transaction fail that writes a turn of one of some workflow ids."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch, make_error: Callable[[], Exception]) -> None:
        self.workflow_ids: set[str] = set()
        self.failed: list[int] = []
        """How many turns each transaction was to write that failed."""
        self.is_outage = False
        """Whether nothing can be written at all, not even that a turn failed."""
        begin = engine.store.begin

        async def begin_failing() -> Any:
            transaction: Any = await begin()
            write = transaction.write

            async def write_or_fail(turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
                poison = [one for one in turns if one.row.workflow_id in self.workflow_ids and one.history is not None]
                if poison or (self.is_outage and turns):
                    self.failed.append(len(turns))
                    await transaction.rollback()
                    raise make_error()
                found: set[str] = await write(turns, unrouted)
                return found

            transaction.write = write_or_fail
            return transaction

        monkeypatch.setattr(engine.store, "begin", begin_failing)
