"""Snapshots of executions as stores keep them: a cache of what a history amounts to, see `holdfast.core.snapshots`.

An execution has at most one. The turn that reaches its sequence puts it in the place of the one before, in its own commit;
the closing of the execution removes it, and so does `Store.purge`. It is not moved or exported: where it is missing, the
history is folded from its beginning.
"""

from __future__ import annotations

import msgspec


class SnapshotRow(msgspec.Struct, frozen=True, gc=False):
    """What the history of an execution amounts to up to a sequence. A later one replaces it."""

    org: str
    execution_id: str
    sequence: int
    """How many events of the history it stands for."""
    schema: int
    body: bytes
