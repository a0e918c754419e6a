"""What a batch gets to hold.

Locks come first, each kind in a statement of its own, and none is waited for; what is read comes after them, so that it is
as new as the locks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.store.columns import to_execution_row, to_timer_row
from holdfast.store.contract import LONGEST_ORDER, Claim, Claimed
from holdfast.store.rows import InboxRow
from holdfast.store.withholding import find_examined, find_withheld

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

Recipient: TypeAlias = tuple[str, str, str]
"""To whom an inbox row goes: (org, execution id, ""), or (org, "", workflow id)."""
Pair: TypeAlias = tuple[str, str]
"""(org, execution id) or (org, workflow id)."""

_ROWS_PER_EXECUTION: Final = 4
"""How many rows are looked at for each execution that is wanted; one may have many."""
_ID_LENGTH: Final = 36
"""How many characters an execution id has."""
_MOST_WINDOWS: Final = 16
"""How often to look further where everything that was found is held by others."""
_MOST_BYTES: Final = 8 << 20
"""How much may wait for those that are taken together: each byte is several in memory, in each of the
transactions under way. One always is."""


async def take_claim(connection: Connection, sql: Mapping[str, str], claim: Claim) -> Claimed:
    """Everything that `claim` asks for and nobody else holds."""
    return await _Taker(connection, sql, claim).take()


class _Taker:
    """Takes one claim within an open transaction: locks first, then reads."""

    def __init__(self, connection: Connection, sql: Mapping[str, str], claim: Claim) -> None:
        self._connection = connection
        self._sql = sql
        self._claim = claim
        self._claimed = Claimed()
        self._known = {one.execution_id: one for one in claim.wanted}
        self._addressed: dict[Pair, None] = {}
        """(org, execution id) of those whose inbox this transaction has locked: open, closed, or not stored."""
        self._pairs: dict[Pair, None] = {}
        """The (org, workflow id) pairs that this transaction has locked."""
        self._workflow_ids = {one.execution_id: one.workflow_id for one in claim.wanted if one.workflow_id}
        """The workflow ids of wanted executions whose rows need not be read."""
        self._unread: list[str] = []

    async def take(self) -> Claimed:
        claim, claimed = self._claim, self._claimed
        if claim.wanted:
            await self._lock_wanted()
        if claim.workflow_ids:
            await self._lock_ids(claim.workflow_ids)
        if claim.request_keys:
            await self._lock_request_keys()
        if claim.limit > 0:
            await self._take_found()
        if self._pairs:
            await self._resolve()
        if self._unread:
            rows = await self._connection.fetch(self._sql["read_executions"], self._unread)
            claimed.rows = {row[1]: to_execution_row(row) for row in rows}
            claimed.withheld = find_withheld(claim, claimed.rows)
        if self._addressed or self._pairs:
            await self._read_waiting()
        if claimed.withheld:
            await self._examine()
        return claimed

    # --- locking ---

    async def _lock(self, pairs: Collection[Pair]) -> set[str]:
        """Lock rows, and hold those that are open; which of them are locked now."""
        locked: set[str] = set()
        ids = list({execution_id for _, execution_id in pairs})
        if self._claim.closing and (closing := [one for one in ids if one in self._claim.closing]):
            await self._connection.fetch(self._sql["escalate"], closing)
        for org, execution_id, version, updated_at, is_open in await self._connection.fetch(
            self._sql["lock_executions"], ids
        ):
            locked.add(execution_id)
            if (org, execution_id) not in pairs:
                continue
            self._addressed[org, execution_id] = None
            if is_open and execution_id not in self._claimed.held:
                self._claimed.held.add(execution_id)
                known = self._known.get(execution_id)
                if known is None or not known.is_known(version, updated_at):
                    self._unread.append(execution_id)
        return locked

    async def _lock_wanted(self) -> None:
        wanted = {(one.org, one.execution_id) for one in self._claim.wanted}
        locked = await self._lock(wanted)
        missing = [execution_id for _, execution_id in wanted if execution_id not in locked]
        if missing:
            rows = await self._connection.fetch(self._sql["read_executions"], missing)
            self._claimed.busy.update(row[1] for row in rows if (row[0], row[1]) in wanted)

    async def _lock_ids(self, pairs: Sequence[Pair]) -> int:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._pairs]
        if not new:
            return 0
        orgs, workflow_ids = zip(*new, strict=True)
        rows = await self._connection.fetch(self._sql["lock_workflow_ids"], orgs, workflow_ids)
        self._pairs.update(dict.fromkeys((org, workflow_id) for org, workflow_id in rows))
        return len(new) - len(rows)

    async def _lock_request_keys(self) -> None:
        columns = zip(*dict.fromkeys(self._claim.request_keys), strict=True)
        rows = await self._connection.fetch(self._sql["lock_request_keys"], *columns)
        self._claimed.held_keys.update((org, kind, key) for org, kind, key in rows)

    async def _lock_found(self, found: Sequence[Recipient]) -> int:
        """Lock those that nobody else holds; how many are held by others."""
        pairs = {(org, execution_id) for org, execution_id, _ in found if execution_id}
        skipped = await self._lock_ids([(org, workflow_id) for org, execution_id, workflow_id in found if not execution_id])
        locked = await self._lock(pairs) if pairs else set()
        missing = {execution_id for _, execution_id in pairs if execution_id not in locked}
        if missing:
            locked.update(await self._lock_missing(missing))
        for pair in pairs:
            if pair[1] in locked:
                self._addressed[pair] = None  # also what names the wrong org: it is for nobody, and ours to answer
            else:
                skipped += 1
        return skipped

    async def _lock_missing(self, execution_ids: Collection[str]) -> set[str]:
        rows = await self._connection.fetch(self._sql["lock_missing"], list(execution_ids))
        return {execution_id for execution_id, is_had in rows if is_had}

    # --- finding ---

    async def _take_found(self) -> None:
        """Up to the limit of those that have work. Where others hold some of them, look further."""
        claim, left = self._claim, self._claim.limit
        routes = ["", *claim.routes] if claim.routes is not None else await self._list_routes()
        skip, window = list(claim.skip), claim.limit * _ROWS_PER_EXECUTION
        # What waits for a wanted one that does not exist is found like anything else that is for nobody.
        seen: set[Recipient] = {
            (one.org, one.execution_id, "")
            for one in claim.wanted
            if (one.org, one.execution_id) in self._addressed or one.execution_id in self._claimed.busy
        }
        seen.update((org, "", workflow_id) for org, workflow_id in claim.skip_workflow_ids)
        room, sizes = _MOST_BYTES, Counter[Recipient]()
        for number in range(_MOST_WINDOWS):
            rows = await self._connection.fetch(
                self._sql["find_work"], routes, skip, window, number * window, claim.due_until
            )
            waiting = [(org, execution_id, workflow_id) for is_due, org, execution_id, workflow_id, _ in rows if not is_due]
            due = [(org, execution_id, "") for is_due, org, execution_id, _, _ in rows if is_due]
            for _, org, execution_id, workflow_id, size in rows:
                sizes[org, execution_id, "" if execution_id else workflow_id] += size
            found = _mix(waiting, due, seen)
            while found and left > 0:
                count = _count_fitting(found[:left], sizes, room) or int(room == _MOST_BYTES)
                if not count:
                    return
                chosen, found = found[:count], found[count:]
                skipped = await self._lock_found(chosen)
                self._claimed.skipped = self._claimed.skipped or skipped > 0
                left -= len(chosen) - skipped
                room -= sum(sizes[address] for address in chosen if self._has(address))
            if left <= 0 or (len(waiting) < window and len(due) < window):
                return

    def _has(self, address: Recipient) -> bool:
        org, execution_id, workflow_id = address
        return (org, execution_id) in self._addressed if execution_id else (org, workflow_id) in self._pairs

    async def _list_routes(self) -> list[str]:
        return [route for (route,) in await self._connection.fetch(self._sql["list_routes"])]

    async def _resolve(self) -> None:
        """The open executions of our workflow ids, claimed like wanted ones. No other can be started: the ids are ours."""
        self._claimed.open_ids = dict.fromkeys(self._pairs)
        orgs, workflow_ids = zip(*self._pairs, strict=True)
        opened: set[Pair] = set()
        for org, workflow_id, execution_id in await self._connection.fetch(
            self._sql["resolve_workflow_ids"], orgs, workflow_ids
        ):
            self._claimed.open_ids[org, workflow_id] = execution_id
            if execution_id not in self._claimed.held:
                opened.add((org, execution_id))
        if opened:
            locked = await self._lock(opened)
            self._claimed.busy.update(execution_id for _, execution_id in opened if execution_id not in locked)

    # --- reading, in statements after those of the locks ---

    def _find_named(self) -> dict[Recipient, None]:
        """The addresses at which something may wait by workflow id: those that are locked, and those of held executions.

        To send something, one need not know whether an id that may be either is a workflow id.
        """
        claimed, named = self._claimed, {(org, "", workflow_id): None for org, workflow_id in self._pairs}
        rows, known = claimed.rows, self._workflow_ids
        for org, execution_id in self._addressed:
            if execution_id not in claimed.held:
                continue
            row = rows.get(execution_id)
            workflow_id = known.get(execution_id, "") if row is None else row.workflow_id
            if not workflow_id:
                continue
            claimed.open_ids[org, workflow_id] = execution_id
            if execution_id in claimed.withheld:
                continue
            named[org, "", workflow_id] = None
            if len(workflow_id) == _ID_LENGTH and (org, workflow_id) not in self._addressed:
                named[org, workflow_id, workflow_id] = None
        return named

    async def _read_waiting(self) -> None:
        claimed, named = self._claimed, self._find_named()
        rows = await self._connection.fetch(
            self._sql["read_waiting"],
            [execution_id for _, execution_id in self._addressed if execution_id not in claimed.withheld],
            list(claimed.held),
            self._claim.due_until,
            *(zip(*named, strict=True) if named else ((), (), ())),
        )
        for org, execution_id, workflow_id, body, order, attempts, route, at, number, kind in rows:
            if execution_id and (org, execution_id) not in self._addressed and (org, execution_id, workflow_id) not in named:
                continue
            if body is not None:
                claimed.inbox.append(InboxRow(org, execution_id, workflow_id, body, order, attempts, route, at))
            else:
                claimed.due.append(to_timer_row((org, execution_id, number, order, kind, attempts, route)))
        if claimed.due:
            claimed.due.sort(key=lambda row: (row.due, row.execution_id, row.number))
        if claimed.inbox:
            claimed.inbox.sort(key=lambda row: row.id)

    async def _examine(self) -> None:
        """Read of the inboxes that are not read what concerns their executions nonetheless."""
        claimed = self._claimed
        examined = find_examined(self._claim, claimed.withheld, claimed.rows)
        if not examined:
            return
        rows = await self._connection.fetch(
            self._sql["read_withheld"], list(examined), list(examined.values()), self._claim.order_prefix, LONGEST_ORDER
        )
        claimed.inbox += [InboxRow(*row) for row in rows if row[0] == claimed.rows[row[1]].org]
        claimed.inbox.sort(key=lambda row: row.id)


def _count_fitting(found: Sequence[Recipient], sizes: Mapping[Recipient, int], room: int) -> int:
    """How many of these, from the first on, are not too much together."""
    for count, address in enumerate(found):
        room -= sizes[address]
        if room < 0:
            return count
    return len(found)


def _mix(waiting: Sequence[Recipient], due: Sequence[Recipient], seen: set[Recipient]) -> list[Recipient]:
    """A turn each for those with envelopes and those with due timers, so that neither starves."""
    found: list[Recipient] = []
    for row in chain.from_iterable(zip_longest(waiting, due)):
        if row is None:
            continue
        org, execution_id, workflow_id = row
        address = (org, execution_id, "" if execution_id else workflow_id)
        if address not in seen:
            seen.add(address)
            found.append(address)
    return found
