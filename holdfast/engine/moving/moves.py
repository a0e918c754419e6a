"""Moving everything from one database to another, whatever each of them is. Killed at any point, it goes on where it was.

Both databases are marked before the first row is copied, and no engine opens a marked one. Each page of rows is committed
together with how far the move has come, so that none is ever copied twice. When all is there and proves to be the same, the
source is marked as moved, for good; only then does the target lose its mark.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from holdfast.engine.moving.checksums import Tally, make_portable
from holdfast.engine.moving.marks import MOVED_FROM, MOVED_TO, MOVING_FROM, MOVING_TO, Mark, read_mark
from holdfast.engine.nodes.roster import read_details
from holdfast.engine.stores import hide_password, name_database, open_store
from holdfast.errors import Conflict, CorruptStore, InvalidConfiguration, NotOurDatabase, StoreMoved, StoreUnavailable
from holdfast.store.moving import FROM_THE_START, Cursor, Kind, Lasting, MarkChange, Movable

if TYPE_CHECKING:
    from holdfast.store.contract import Store

SILENCE: Final = 30
"""Seconds after which a node that has not said goodbye counts as gone; or twice its lease, if that is longer."""
PAGE: Final = 2_000
"""Rows that are copied with one commit."""


class Copied(msgspec.Struct, frozen=True):
    """How far the copy of one kind has come."""

    tally: Tally = Tally()
    cursor: Cursor = FROM_THE_START
    is_done: bool = False


class Progress(Mark, frozen=True, kw_only=True):
    """The mark on a target: how far the move into it has come."""

    copied: Mapping[Kind, Copied] = msgspec.field(default_factory=dict)


class Step(msgspec.Struct, frozen=True):
    """What a move is at."""

    verb: str
    kind: Kind
    done: int
    total: int


class MoveReport(msgspec.Struct, frozen=True):
    """What was moved, by kind; or nothing, because it had been before."""

    tallies: Mapping[Kind, Tally]
    was_done_before: bool = False


Watch: TypeAlias = Callable[[Step], None]


async def move(source: str, target: str, *, watch: Watch | None = None, page: int = PAGE) -> MoveReport:
    """Move everything from the database that one URL names to that of another; or go on with it.

    Raises StoreMoved, Conflict or another StoreError if that cannot be, or if the copy does not prove to be the same.
    """
    here, there = name_database(source), name_database(target)
    if here == there:
        raise _one_and_the_same(here, there)
    async with _open(source, may_make=False) as from_, _open(target, may_make=True) as to:
        return await _Move(from_, to, here, there, watch or _look_away, page).run()


async def abandon(source: str, target: str) -> bool:
    """Give up a move that is not complete: the source is free again, and the target empty.

    False if the target could not be reached: then it stays as it is, and no engine opens it.
    """
    here, there = name_database(source), name_database(target)
    async with _open(source, may_make=False) as from_:
        marks = await from_.read_marks()
        if (done := read_mark(marks, MOVED_TO)) is not None:
            raise StoreMoved(
                f"Expected a move that is not complete, but all was moved to '{done.other}' at {done.at}. "
                "To have it back, move it from there to a new database."
            )
        begun = read_mark(marks, MOVING_TO)
        is_cleared = await _clear(target, begun, here, there)
        if begun is not None:
            await from_.change_marks([MarkChange(MOVING_TO, marks[MOVING_TO], None)])
        return is_cleared


async def _clear(target: str, begun: Mark | None, here: str, there: str) -> bool:
    """Empty the target of a move, if that is what it is. A source that knows of none may have been freed before."""
    try:
        async with _open(target, may_make=False) as to:
            marks = await to.read_marks()
            found = read_mark(marks, MOVING_FROM)
            if found is None and begun is None:
                raise Conflict(f"Expected a move from '{here}' to '{there}', but there is none. Name the databases of one.")
            if found is None:
                return True
            if found.move != begun.move if begun is not None else found.other != here:
                raise Conflict(
                    f"Expected '{there}' to be the target of this move, but it is that of a move from '{found.other}'. "
                    "Name the databases of one move."
                )
            return await to.empty(MarkChange(MOVING_FROM, marks[MOVING_FROM], None))
    except NotOurDatabase:
        if begun is None:
            raise
        return True
    except StoreUnavailable:
        return False


@asynccontextmanager
async def _open(url: str, *, may_make: bool) -> AsyncIterator[Movable]:
    store: Store = open_store(url)
    if not isinstance(store, Lasting):
        raise InvalidConfiguration(
            f"Expected a database that outlives the process, but '{hide_password(url)}' does not. Name another."
        )
    if may_make:
        await store.open()
    else:
        await store.open_existing(upgrade=True)
    try:
        yield store.make_movable()
    finally:
        await store.close()


def _look_away(_step: Step) -> None:
    """For whoever does not want to watch."""


class _Move:
    """One move, between two open databases."""

    def __init__(self, source: Movable, target: Movable, from_: str, to: str, watch: Watch, page: int) -> None:
        self._source = source
        self._target = target
        self._from = from_
        self._to = to
        self._watch = watch
        self._page = page
        self._mark = ""
        self._totals: Mapping[Kind, int] = {}

    async def run(self) -> MoveReport:
        """From wherever it stands to the end."""
        progress = await self._begin()
        if progress is None:
            return MoveReport({}, was_done_before=True)
        self._totals = await self._source.count_rows()
        for kind in Kind:
            progress = await self._copy(kind, progress)
        await self._target.settle()
        tallies = {kind: progress.copied[kind].tally for kind in Kind}
        await self._verify(tallies)
        await self._finish(progress)
        return MoveReport(tallies)

    # --- the beginning ---

    async def _begin(self) -> Progress | None:
        """Find out where the move stands, and mark both sides if it is a new one; None if it is complete."""
        source, target = await self._source.read_marks(), await self._target.read_marks()
        here, done, there = read_mark(source, MOVING_TO), read_mark(source, MOVED_TO), read_mark(target, MOVING_FROM)
        arrived = read_mark(target, MOVED_FROM)
        if done is not None and arrived is not None and arrived.move == done.move:
            return None
        await self._require_rest()
        mine = done or here
        if mine is not None and there is not None and mine.move == there.move:
            self._mark = target[MOVING_FROM]
            return msgspec.json.decode(self._mark, type=Progress)
        if done is not None:
            raise StoreMoved(
                f"Expected to move '{self._from}', but all that is in it was moved to '{done.other}' at {done.at}. "
                "Move it from there."
            )
        await self._require_fresh(here, there, target)
        move = here.move if here is not None else await self._mark_source()
        progress = Progress(move=move, other=self._from, at=_now())
        self._mark = _encode(progress)
        if not await self._target.change_marks([MarkChange(MOVING_FROM, None, self._mark)]):
            raise self._overtaken()
        await self._require_rest()  # who came before the marks is there now; who comes later sees them
        return progress

    async def _require_rest(self) -> None:
        """See that nobody works on either side."""
        for store, name in ((self._source, self._from), (self._target, self._to)):
            for node, silence in await store.list_present():
                longest = max(SILENCE, 2 * read_details(node).lease)
                if silence < longest:
                    raise Conflict(
                        f"Expected nobody to work on '{name}', but node '{node.node}' was seen {silence} s ago. Stop it, "
                        f"and try again; if it was killed, it counts as gone after {longest:.0f} s."
                    )

    async def _require_fresh(self, here: Mark | None, there: Mark | None, target: Mapping[str, str]) -> None:
        """See that the source goes nowhere else, and that the target is empty and comes from nowhere else."""
        if there is not None:
            raise Conflict(
                f"Expected '{self._to}' to be empty, but a move from '{there.other}' to it is under way. Finish that one, "
                f"or give it up: `holdfast migrate {there.other} {self._to} --abandon`."
            )
        if here is not None and here.other != self._to:
            raise Conflict(
                f"Expected to move '{self._from}', but a move from it to '{here.other}' is under way. Finish that one, or "
                f"give it up: `holdfast migrate {self._from} {here.other} --abandon`."
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
        """Begin: a new move has a new id."""
        move = secrets.token_hex(8)
        change = MarkChange(MOVING_TO, None, _encode(Mark(move=move, other=self._to, at=_now())))
        if not await self._source.change_marks([change]):
            raise self._overtaken()
        if (await self._target.read_marks()).get(MOVING_TO) == change.value:
            await self._source.change_marks([MarkChange(MOVING_TO, change.value, None)])
            raise _one_and_the_same(self._from, self._to)
        return move

    # --- the middle ---

    async def _copy(self, kind: Kind, progress: Progress) -> Progress:
        """Page after page, each committed with how far that is."""
        state, total = progress.copied.get(kind, Copied()), self._totals[kind]
        while not state.is_done:
            page = await self._source.read_page(kind, state.cursor, self._page)
            rows = make_portable(page.rows)
            state = Copied(state.tally.add(kind, rows), page.cursor or state.cursor, is_done=page.cursor is None)
            progress = msgspec.structs.replace(progress, copied={**progress.copied, kind: state})
            before, self._mark = self._mark, _encode(progress)
            if not await self._target.put_page(kind, rows, MarkChange(MOVING_FROM, before, self._mark)):
                raise self._overtaken()
            self._watch(Step("copied", kind, state.tally.rows, total))
        return progress

    async def _verify(self, expected: Mapping[Kind, Tally]) -> None:
        """Read everything back, and compare; also with how many rows each database says it has."""
        here, there = await self._source.count_rows(), await self._target.count_rows()
        for kind in Kind:
            tally, cursor = Tally(), FROM_THE_START
            while True:
                page = await self._target.read_page(kind, cursor, self._page)
                if page.cursor is None:
                    break
                tally, cursor = tally.add(kind, page.rows), page.cursor
                self._watch(Step("verified", kind, tally.rows, there[kind]))
            if tally != expected[kind] or not here[kind] == there[kind] == tally.rows:
                raise CorruptStore(
                    f"Expected the {kind} in '{self._to}' to be those of '{self._from}', but these are {here[kind]:,}, of "
                    f"which {expected[kind].rows:,} were read, with checksum {expected[kind].checksum}; and those are "
                    f"{there[kind]:,}, of which {tally.rows:,} were read, with checksum {tally.checksum}. "
                    "Run `holdfast check` on both; then give the move up with --abandon, and begin again."
                )

    # --- the end ---

    async def _finish(self, progress: Progress) -> None:
        """The source first: never can an engine open both. If this is where it ends, the next run does the rest."""
        marks = await self._source.read_marks()
        if MOVED_TO not in marks:
            moved_to = _encode(Mark(move=progress.move, other=self._to, at=_now()))
            changes = [MarkChange(MOVING_TO, marks.get(MOVING_TO), None), MarkChange(MOVED_TO, None, moved_to)]
            if not await self._source.change_marks(changes):
                raise self._overtaken()
        moved_from = _encode(Mark(move=progress.move, other=self._from, at=_now()))
        changes = [MarkChange(MOVING_FROM, self._mark, None), MarkChange(MOVED_FROM, None, moved_from)]
        if not await self._target.change_marks(changes):
            raise self._overtaken()

    def _overtaken(self) -> Conflict:
        return Conflict(
            f"Expected to be the only one who moves '{self._from}' to '{self._to}', but another process does too. "
            "Let that one finish."
        )


def _one_and_the_same(source: str, target: str) -> Conflict:
    return Conflict(f"Expected two databases, but '{source}' and '{target}' are one and the same. Name another target.")


def _encode(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
