"""Locks as PostgreSQL has them: on rows in three strengths, and on keys. They end with their transaction.

| held        | by              | KEY SHARE | NO KEY UPDATE | UPDATE  |
|-------------|-----------------|-----------|---------------|---------|
| KEY SHARE   | a delivery      | goes      | goes          | refused |
| NO KEY UPD. | a claim         | goes      | refused       | refused |
| UPDATE      | a closing turn  | waits     | refused       | refused |

Who claims never waits. Who waits (a delivery, a change of status) holds nothing that a claim would wait for.
So nobody waits in a circle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import TypeAlias

Owner: TypeAlias = Hashable
"""The transaction that holds a lock."""
LockKey: TypeAlias = tuple[str, str]
"""(org, execution id) of a row, or (org, workflow id) of an id."""


class _RowLock:
    """The transactions that hold or share one row."""

    __slots__ = ("holder", "is_exclusive", "sharers")

    def __init__(self) -> None:
        self.holder: Owner | None = None
        self.is_exclusive = False
        self.sharers: set[Owner] = set()


class Locks:
    """The locks on rows, workflow ids and other keys of one database."""

    def __init__(self) -> None:
        self._rows: dict[LockKey, _RowLock] = {}
        self._ids: dict[LockKey, Owner] = {}
        self._keys: dict[Hashable, Owner] = {}
        self._topics: dict[Hashable, dict[Owner, bool]] = {}
        """Who has a lock that can be shared, and whether alone."""
        self._topics_of: dict[Owner, set[Hashable]] = {}
        self._rows_of: dict[Owner, set[LockKey]] = {}
        self._ids_of: dict[Owner, set[LockKey]] = {}
        self._keys_of: dict[Owner, set[Hashable]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    # --- rows ---

    def try_update(self, owner: Owner, row: LockKey) -> bool:
        """FOR NO KEY UPDATE SKIP LOCKED. The row need not exist: an id that nobody has yet is locked like one that is."""
        lock = self._lock(row)
        if lock.holder is not None:
            return lock.holder is owner
        lock.holder = owner
        self._rows_of.setdefault(owner, set()).add(row)
        return True

    def try_escalate(self, owner: Owner, row: LockKey) -> bool:
        """FOR UPDATE SKIP LOCKED: refused while others share the row, so while a delivery to it is under way."""
        if not self.try_update(owner, row):
            return False
        lock = self._rows[row]
        if lock.sharers - {owner}:
            return False
        lock.is_exclusive = True
        return True

    def try_share(self, owner: Owner, row: LockKey) -> bool:
        """FOR KEY SHARE, without its wait: refused while another has escalated."""
        lock = self._lock(row)
        if lock.is_exclusive and lock.holder is not owner:
            return False
        lock.sharers.add(owner)
        self._rows_of.setdefault(owner, set()).add(row)
        return True

    def holds(self, owner: Owner, row: LockKey) -> bool:
        """Whether the owner has claimed the row."""
        lock = self._rows.get(row)
        return lock is not None and lock.holder is owner

    # --- ids and other keys ---

    def try_id(self, owner: Owner, workflow_id: LockKey) -> bool:
        """The advisory lock on (org, workflow id): pg_try_advisory_xact_lock."""
        if self._ids.setdefault(workflow_id, owner) is not owner:
            return False
        self._ids_of.setdefault(owner, set()).add(workflow_id)
        return True

    def holds_id(self, owner: Owner, workflow_id: LockKey) -> bool:
        """Whether the owner has locked the id."""
        return self._ids.get(workflow_id) is owner

    def try_key(self, owner: Owner, key: Hashable) -> bool:
        """Any other row by its key, or a unique key before its commit: refused where another's write is not committed."""
        if self._keys.setdefault(key, owner) is not owner:
            return False
        self._keys_of.setdefault(owner, set()).add(key)
        return True

    def try_topic(self, owner: Owner, key: Hashable, *, alone: bool) -> bool:
        """An advisory lock that can be shared: pg_try_advisory_xact_lock, or with _shared."""
        holders = self._topics.setdefault(key, {})
        if any(other is not owner and (alone or is_alone) for other, is_alone in holders.items()):
            return False
        holders[owner] = alone or holders.get(owner, False)
        self._topics_of.setdefault(owner, set()).add(key)
        return True

    def holds_key(self, owner: Owner, key: Hashable) -> bool:
        """Whether the owner has locked the key."""
        return self._keys.get(key) is owner

    # --- the end, and waiting for it ---

    def release(self, owner: Owner) -> None:
        """The transaction ended: whatever it held is free."""
        for row in self._rows_of.pop(owner, ()):
            lock = self._rows[row]
            lock.sharers.discard(owner)
            if lock.holder is owner:
                lock.holder, lock.is_exclusive = None, False
            if lock.holder is None and not lock.sharers:
                del self._rows[row]
        for workflow_id in self._ids_of.pop(owner, ()):
            del self._ids[workflow_id]
        for key in self._keys_of.pop(owner, ()):
            del self._keys[key]
        for topic in self._topics_of.pop(owner, ()):
            del self._topics[topic][owner]
            if not self._topics[topic]:
                del self._topics[topic]
        self.stir()

    def stir(self) -> None:
        """Let everybody who waits look again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Wait until some transaction has ended and freed its locks."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def count(self) -> int:
        """How many rows and ids are held; 0 when no transaction is open."""
        return len(self._rows) + len(self._ids)

    def _lock(self, row: LockKey) -> _RowLock:
        lock = self._rows.get(row)
        if lock is None:
            lock = self._rows[row] = _RowLock()
        return lock
