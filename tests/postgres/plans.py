"""Which statements a part of the store runs, and by which plans the server runs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


class RecordedConnections:
    """The connections of a store, and which statements were run by them."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.run: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch(self, doing: str, name: str, *values: Any) -> Any:
        """Run a statement by its name, and note it."""
        self.run.append((self._inner.sql[name], values))
        return await self._inner.fetch(doing, name, *values)

    async def fetch_statement(self, doing: str, statement: str, *values: Any) -> Any:
        """Run a statement, and note it."""
        self.run.append((statement, values))
        return await self._inner.fetch_statement(doing, statement, *values)

    async def explain(self) -> list[dict[str, Any]]:
        """The steps of the plans by which the server runs what was noted, with what each read."""
        steps: list[dict[str, Any]] = []
        async with self._inner.use("explain") as connection:
            for statement, values in self.run:
                steps += await explain(connection, statement, *values)
        return steps


def count_read(steps: Iterable[dict[str, Any]]) -> dict[str, float]:
    """How many rows of each table the steps of a plan looked at."""
    read: dict[str, float] = {}
    for step in steps:
        if (table := step.get("Relation Name")) is not None and "Scan" in step["Node Type"]:
            rows = (step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]
            read[table] = read.get(table, 0) + rows
    return read


async def explain(connection: Any, statement: str, *values: Any) -> list[dict[str, Any]]:
    """Run a statement, and give the steps of its plan, outer ones first."""
    (found,) = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *values))
    return list(_list_steps(found["Plan"]))


def _list_steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _list_steps(inner)
