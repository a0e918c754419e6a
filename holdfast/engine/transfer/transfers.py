"""Transfers: everything that one database holds goes to another, of any kind. A killed transfer can be resumed.

Both databases are marked before the first row is copied, and no engine opens a marked one. Each page of rows is committed
together with the position it reaches, so that no row is copied twice. When the checksums of both databases agree, the source
is marked as moved, for good; only then does the target lose its mark.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from holdfast.engine.nodes.roster import read_details
from holdfast.engine.stores import hide_password, make_store, name_database
from holdfast.engine.transfer.checksums import Tally, make_portable
from holdfast.engine.transfer.marks import MOVED_FROM, MOVED_TO, MOVING_FROM, MOVING_TO, Mark, read_mark
from holdfast.errors import Conflict, CorruptStore, InvalidConfiguration, NotOurDatabase, StoreMoved, StoreUnavailable
from holdfast.store.transfer import FROM_THE_START, Cursor, MarkChange, PersistentStore, RowKind, Transferable

if TYPE_CHECKING:
    from holdfast.store.contract import Store

SILENCE: Final = 30
"""Seconds without a heartbeat after which a node that has not left counts as dead; or twice its lease, if that is longer."""
PAGE: Final = 2_000
"""How many rows one commit copies."""


class CopyPosition(msgspec.Struct, frozen=True):
    """How far the copy of one kind of row has come."""

    tally: Tally = Tally()
    cursor: Cursor = FROM_THE_START
    is_done: bool = False


class TargetMark(Mark, frozen=True, kw_only=True):
    """The mark on a target while it is being filled, with the positions that the copy has reached."""

    copied: Mapping[RowKind, CopyPosition] = msgspec.field(default_factory=dict)


class TransferProgress(msgspec.Struct, frozen=True):
    """A report from a running transfer: so many of the rows of one kind are copied, or verified."""

    verb: Literal["copied", "verified"]
    kind: RowKind
    done: int
    total: int


class TransferReport(msgspec.Struct, frozen=True):
    """How many rows of each kind a transfer copied, with their checksums; none if it had been completed before."""

    tallies: Mapping[RowKind, Tally]
    was_done_before: bool = False
    """Whether an earlier call had completed this transfer."""


OnProgress: TypeAlias = Callable[[TransferProgress], None]


async def transfer(source: str, target: str, *, on_progress: OnProgress | None = None, page: int = PAGE) -> TransferReport:
    """Transfer everything from the database at one URL to the database at another; resumes a transfer that was interrupted.

    Raises StoreMoved, Conflict or another StoreError if it is not possible, or if the copy differs from the source.
    """
    here, there = name_database(source), name_database(target)
    if here == there:
        raise _one_and_the_same(here, there)
    async with _open(source, may_make=False) as from_, _open(target, may_make=True) as to:
        return await _Transfer(_Side(from_, here), _Side(to, there), on_progress or _ignore_progress, page).run()


async def abandon(source: str, target: str) -> bool:
    """Give up an incomplete transfer: engines may open the source again, and the target is emptied.

    False if the target could not be reached: it keeps its rows and its mark, so that no engine opens it.
    """
    here, there = name_database(source), name_database(target)
    async with _open(source, may_make=False) as from_:
        marks = await from_.read_marks()
        if (done := read_mark(marks, MOVED_TO)) is not None:
            raise StoreMoved(
                f"Expected a transfer that is not complete, but all was moved to '{done.other}' at {done.at}. "
                "To have it back, transfer it from there to a new database."
            )
        begun = read_mark(marks, MOVING_TO)
        is_cleared = await _clear(target, begun, here, there)
        if begun is not None:
            await from_.change_marks([MarkChange(MOVING_TO, marks[MOVING_TO], None)])
        return is_cleared


async def _clear(target: str, begun: Mark | None, here: str, there: str) -> bool:
    """Empty the target if its transfer comes from `here`. The source may have lost its mark in an earlier call."""
    try:
        async with _open(target, may_make=False) as to:
            marks = await to.read_marks()
            found = read_mark(marks, MOVING_FROM)
            if found is None and begun is None:
                raise Conflict(
                    f"Expected a transfer from '{here}' to '{there}', but there is none. Name the databases of one."
                )
            if found is None:
                return True
            if found.transfer_id != begun.transfer_id if begun is not None else found.other != here:
                raise Conflict(
                    f"Expected '{there}' to be the target of this transfer, but it is that of a transfer from "
                    f"'{found.other}'. Name the databases of one transfer."
                )
            return await to.empty(MarkChange(MOVING_FROM, marks[MOVING_FROM], None))
    except NotOurDatabase:
        if begun is None:
            raise
        return True
    except StoreUnavailable:
        return False


@asynccontextmanager
async def _open(url: str, *, may_make: bool) -> AsyncIterator[Transferable]:
    store: Store = make_store(url)
    if not isinstance(store, PersistentStore):
        raise InvalidConfiguration(
            f"Expected a database that outlives the process, but '{hide_password(url)}' does not. Name another."
        )
    if may_make:
        await store.open()
    else:
        await store.open_existing(upgrade=True)
    try:
        yield store.make_transferable()
    finally:
        await store.close()


def _ignore_progress(_progress: TransferProgress) -> None:
    """Used where the caller wants no reports of progress."""


class _Side(NamedTuple):
    """One of the two databases of a transfer: its store, and its name without the password."""

    store: Transferable
    name: str


class _Transfer:
    """One transfer between two open databases."""

    def __init__(self, source: _Side, target: _Side, on_progress: OnProgress, page: int) -> None:
        self._source, self._from = source
        self._target, self._to = target
        self._on_progress = on_progress
        self._page = page
        self._mark = ""
        """The target's mark as it is stored: each page replaces it, and only if nobody else has."""
        self._totals: Mapping[RowKind, int] = {}

    async def run(self) -> TransferReport:
        """Run the transfer from the position that it has reached to its end."""
        progress = await self._begin()
        if progress is None:
            return TransferReport({}, was_done_before=True)
        self._totals = await self._source.count_rows()
        for kind in RowKind:
            progress = await self._copy(kind, progress)
        await self._target.settle()
        tallies = {kind: progress.copied[kind].tally for kind in RowKind}
        await self._verify(tallies)
        await self._finish(progress)
        return TransferReport(tallies)

    # --- marking ---

    async def _begin(self) -> TargetMark | None:
        """Read which position the transfer has reached, and mark both databases if it is new; None if it is complete."""
        source, target = await self._source.read_marks(), await self._target.read_marks()
        here, done, there = read_mark(source, MOVING_TO), read_mark(source, MOVED_TO), read_mark(target, MOVING_FROM)
        arrived = read_mark(target, MOVED_FROM)
        if done is not None and arrived is not None and arrived.transfer_id == done.transfer_id:
            return None
        await self._require_rest()
        mine = done or here
        if mine is not None and there is not None and mine.transfer_id == there.transfer_id:
            self._mark = target[MOVING_FROM]
            return msgspec.json.decode(self._mark, type=TargetMark)
        if done is not None:
            raise StoreMoved(
                f"Expected to transfer '{self._from}', but all that is in it was moved to '{done.other}' at {done.at}. "
                "Transfer it from there."
            )
        await self._require_fresh(here, there, target)
        transfer_id = here.transfer_id if here is not None else await self._mark_source()
        progress = TargetMark(transfer_id=transfer_id, other=self._from, at=_now())
        self._mark = _encode(progress)
        if not await self._target.change_marks([MarkChange(MOVING_FROM, None, self._mark)]):
            raise self._overtaken()
        await self._require_rest()  # a node that opened before the marks shows now; one that opens later sees them
        return progress

    async def _require_rest(self) -> None:
        """Raise Conflict if a living node works on either database."""
        for store, name in ((self._source, self._from), (self._target, self._to)):
            for node, silence in await store.list_present():
                longest = max(SILENCE, 2 * read_details(node).lease)
                if silence < longest:
                    raise Conflict(
                        f"Expected nobody to work on '{name}', but node '{node.node}' was seen {silence} s ago. Stop it, "
                        f"and try again; if it was killed, it counts as dead after {longest:.0f} s."
                    )

    async def _require_fresh(self, here: Mark | None, there: Mark | None, target: Mapping[str, str]) -> None:
        """Raise Conflict if either database takes part in another transfer, or the target holds rows."""
        if there is not None:
            raise Conflict(
                f"Expected '{self._to}' to be empty, but a transfer from '{there.other}' to it is under way. Finish that "
                f"one, or give it up: `holdfast transfer {there.other} {self._to} --abandon`."
            )
        if here is not None and here.other != self._to:
            raise Conflict(
                f"Expected to transfer '{self._from}', but a transfer from it to '{here.other}' is under way. Finish that "
                f"one, or give it up: `holdfast transfer {self._from} {here.other} --abandon`."
            )
        if MOVED_TO in target or MOVING_TO in target:
            raise Conflict(
                f"Expected '{self._to}' to be a new database, but what was in it is moved elsewhere. Name another."
            )
        counts = await self._target.count_rows()
        if any(counts.values()):
            held = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
            raise Conflict(f"Expected '{self._to}' to be empty, but it holds {held}. Name another database, or empty it.")

    async def _mark_source(self) -> str:
        """Mark the source with the id of a new transfer; returns the id. Raises Conflict if both URLs name one database."""
        transfer_id = secrets.token_hex(8)
        change = MarkChange(MOVING_TO, None, _encode(Mark(transfer_id=transfer_id, other=self._to, at=_now())))
        if not await self._source.change_marks([change]):
            raise self._overtaken()
        if (await self._target.read_marks()).get(MOVING_TO) == change.value:
            await self._source.change_marks([MarkChange(MOVING_TO, change.value, None)])
            raise _one_and_the_same(self._from, self._to)
        return transfer_id

    # --- copying and verifying ---

    async def _copy(self, kind: RowKind, progress: TargetMark) -> TargetMark:
        """Copy the rows of one kind page by page, each committed together with the position it reaches."""
        state, total = progress.copied.get(kind, CopyPosition()), self._totals[kind]
        while not state.is_done:
            page = await self._source.read_page(kind, state.cursor, self._page)
            rows = make_portable(page.rows)
            state = CopyPosition(state.tally.add(kind, rows), page.cursor or state.cursor, is_done=page.cursor is None)
            progress = msgspec.structs.replace(progress, copied={**progress.copied, kind: state})
            before, self._mark = self._mark, _encode(progress)
            if not await self._target.put_page(kind, rows, MarkChange(MOVING_FROM, before, self._mark)):
                raise self._overtaken()
            self._on_progress(TransferProgress("copied", kind, state.tally.rows, total))
        return progress

    async def _verify(self, expected: Mapping[RowKind, Tally]) -> None:
        """Read all rows back from the target. Raises CorruptStore if counts or checksums differ from the source."""
        here, there = await self._source.count_rows(), await self._target.count_rows()
        for kind in RowKind:
            tally, cursor = Tally(), FROM_THE_START
            while True:
                page = await self._target.read_page(kind, cursor, self._page)
                if page.cursor is None:
                    break
                tally, cursor = tally.add(kind, page.rows), page.cursor
                self._on_progress(TransferProgress("verified", kind, tally.rows, there[kind]))
            if tally != expected[kind] or not here[kind] == there[kind] == tally.rows:
                raise CorruptStore(
                    f"Expected the {kind} in '{self._to}' to be those of '{self._from}', but these are {here[kind]:,}, of "
                    f"which {expected[kind].rows:,} were read, with checksum {expected[kind].checksum}; and those are "
                    f"{there[kind]:,}, of which {tally.rows:,} were read, with checksum {tally.checksum}. "
                    "Run `holdfast check` on both; then give the transfer up with --abandon, and start again."
                )

    # --- completing ---

    async def _finish(self, progress: TargetMark) -> None:
        """Mark the source as moved, then free the target, so that engines never open both; a rerun completes the rest."""
        marks = await self._source.read_marks()
        if MOVED_TO not in marks:
            moved_to = _encode(Mark(transfer_id=progress.transfer_id, other=self._to, at=_now()))
            changes = [MarkChange(MOVING_TO, marks.get(MOVING_TO), None), MarkChange(MOVED_TO, None, moved_to)]
            if not await self._source.change_marks(changes):
                raise self._overtaken()
        moved_from = _encode(Mark(transfer_id=progress.transfer_id, other=self._from, at=_now()))
        changes = [MarkChange(MOVING_FROM, self._mark, None), MarkChange(MOVED_FROM, None, moved_from)]
        if not await self._target.change_marks(changes):
            raise self._overtaken()

    def _overtaken(self) -> Conflict:
        return Conflict(
            f"Expected to be the only one that transfers '{self._from}' to '{self._to}', but another process does too. "
            "Let that one finish."
        )


def _one_and_the_same(source: str, target: str) -> Conflict:
    return Conflict(f"Expected two databases, but '{source}' and '{target}' are one and the same. Name another target.")


def _encode(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
