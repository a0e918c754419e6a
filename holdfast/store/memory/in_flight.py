"""Which executions processes are about to take turns of. Each call is one statement that commits by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.store.memory.tables import Tables
from holdfast.store.nodes import InFlightMark


def mark(tables: Tables, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
    """Record what a process has in flight; which of it others recorded at the same version."""
    tables.in_flight.pop((process, slot), None)  # so that the newest mark is the last
    tables.in_flight[process, slot] = dict(versions)
    found: dict[str, list[InFlightMark]] = {}
    for (other, other_slot), marked in tables.in_flight.items():
        if other != process:
            for execution_id, version in marked.items():
                if versions.get(execution_id) == version:
                    found.setdefault(execution_id, []).append(InFlightMark(other, other_slot))
    return found


def forget(tables: Tables, processes: Collection[str]) -> None:
    """Drop what these processes recorded as in flight."""
    for key in [key for key in tables.in_flight if key[0] in processes]:
        del tables.in_flight[key]
