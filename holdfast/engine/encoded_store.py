"""A store behind a codec: whatever is written goes through it, and whatever is read comes back through it.

The engine and its programs see plain payloads; the database holds encoded ones. All payloads of a transaction's write, and
all of a read, go to the codec in one call per organisation. While the store is open, messages quote no value. Rows that
cannot be read, because they are damaged or a newer Holdfast wrote them, pass as they are: whoever reads them finds out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from holdfast.core import codec as formats
from holdfast.core.instants import Instant
from holdfast.core.payloads import CONFIDENCE, Payload
from holdfast.core.replies import read_replied
from holdfast.core.snapshots import decode_payload
from holdfast.engine.encoded_definitions import EncodedDefinitions
from holdfast.engine.payload_codecs import (
    PayloadCodec,
    decode_payloads,
    decode_shown,
    encode_payloads,
    finish_at_once,
    is_encoded,
    is_plain,
    list_payloads,
    replace_payloads,
)
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.contract import (
    Claim,
    Claimed,
    ExecutionFilter,
    Store,
    Transaction,
    TurnWrite,
    UnroutedWrite,
    UserFunction,
)
from holdfast.store.definitions import Definitions
from holdfast.store.once import KeyedCall, Once
from holdfast.store.pauses import RowChange
from holdfast.store.publications import PendingRow, PublicationRow, Publishable, Published
from holdfast.store.questions import AnswerRow, QuestionRow, Questions, read_question
from holdfast.store.rows import (
    ActivityRow,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    RequestKeyId,
    RequestRow,
)
from holdfast.store.schedules import ScheduleChange, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.tasks import (
    ChangeOutcome,
    TaskChange,
    TaskEventRow,
    TaskFilter,
    TaskKey,
    TaskRow,
    Tasks,
    decode_body,
    decode_event_body,
)

T = TypeVar("T")
Row = TypeVar(
    "Row",
    ExecutionRow,
    HistoryRow,
    InboxRow,
    DeadLetterRow,
    ActivityRow,
    RequestRow,
    TaskRow,
    TaskEventRow,
    ScheduleRow,
    PublicationRow,
    PendingRow,
    QuestionRow,
    AnswerRow,
    SnapshotRow,
)
Convert: TypeAlias = Callable[[list[Payload]], Awaitable[list[Payload]]]


def put_codec_before(store: Store, codec: PayloadCodec | None) -> Store:
    """The store with a codec between it and the engine; the store itself if there is none."""
    bare = find_bare_store(store)
    return bare if codec is None else cast("Store", EncodedStore(bare, codec))


def find_bare_store(store: Store) -> Store:
    """The store without its codec, for what moves rows as they are."""
    return store.bare if isinstance(store, EncodedStore) else store


def show_encoded(store: Store) -> Store:
    """The store for those who only show what is in it: values that its codec cannot decode now are shown as encoded."""
    return cast("Store", store.shown) if isinstance(store, EncodedStore) else store


async def begin_without_values(store: Store) -> Transaction:
    """Begin a transaction that leaves the values which it reads encoded: its turns need none."""
    transaction = await store.begin()
    if isinstance(transaction, EncodedTransaction):
        transaction.decodes = False
    return transaction


# --- rows ---------------------------------------------------------------------------------------------------------------


_READERS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    ExecutionRow: lambda row: formats.decode_details(row.details),
    HistoryRow: lambda row: formats.decode_events(row.body, row.schema),
    InboxRow: lambda row: formats.decode_envelope(row.body),
    DeadLetterRow: lambda row: formats.decode_envelope(row.body),
    ActivityRow: lambda row: formats.decode_task(row.body),
    TaskRow: decode_body,
    TaskEventRow: decode_event_body,
    ScheduleRow: lambda row: formats.decode_schedule(row.details),
    PublicationRow: lambda row: formats.decode_publication(row.body),
    PendingRow: lambda row: formats.decode_publication(row.body),
    RequestRow: lambda row: read_replied(row.answer),
    QuestionRow: read_question,
    AnswerRow: lambda row: read_replied(row.answer),
    SnapshotRow: lambda row: decode_payload(row.body),
}
"""What a row holds of values that may have payloads."""


def _write_value(row: Any, value: Any) -> Any:
    """The row with another value in the place of the one that it holds."""
    if type(row) in (ExecutionRow, ScheduleRow):
        return replace(row, details=formats.encode(value))
    if type(row) is ActivityRow:
        return replace(row, body=formats.encode_task(value))
    if type(row) in (RequestRow, AnswerRow):
        return replace(row, answer=formats.encode(value))
    if type(row) is HistoryRow:
        return replace(row, body=formats.encode(value), schema=formats.SCHEMA)
    return replace(row, body=formats.encode(value))


async def _convert_rows(rows: Sequence[Row], is_wanted: Callable[[Payload], bool], convert: Convert) -> list[Row]:
    """Rows with their payloads converted, all in one call. Rows without a wanted one, or that cannot be read, stay."""
    values: list[Any] = []
    payloads: list[Payload] = []
    for row in rows:
        try:
            value = _READERS[type(row)](row)
        except (CorruptStore, NewerFormat):
            value = None
        found = list(list_payloads(value))
        is_concerned = any(map(is_wanted, found))
        values.append(value if is_concerned else None)
        payloads += found if is_concerned else ()
    if not payloads:
        return list(rows)
    converted = iter(await convert(payloads))
    return [
        row if value is None else _write_value(row, replace_payloads(value, converted))
        for row, value in zip(rows, values, strict=True)
    ]


class _RowCodec:
    """Converts rows in both directions."""

    def __init__(self, codec: PayloadCodec, *, only_shows: bool = False) -> None:
        self._codec = codec
        self._decode_payloads = decode_shown if only_shows else decode_payloads

    async def decode(self, rows: Sequence[Row]) -> list[Row]:
        """Rows from the database as the engine takes them."""
        return await _convert_rows(rows, is_encoded, lambda payloads: self._decode_payloads(self._codec, payloads))

    async def decode_one(self, row: Row | None) -> Row | None:
        """One row from the database, if there is one."""
        return None if row is None else (await self.decode([row]))[0]

    async def encode(self, rows: Sequence[Row], org: str) -> list[Row]:
        """Rows of one organisation as the database gets them."""
        return await _convert_rows(rows, is_plain, lambda payloads: encode_payloads(self._codec, payloads, org))

    async def encode_by_org(self, rows: Sequence[InboxRow]) -> list[InboxRow]:
        """Inbox rows of any organisations as the database gets them, in their order."""
        found: dict[int, InboxRow] = {}
        for org in dict.fromkeys(row.org for row in rows):
            places = [place for place, row in enumerate(rows) if row.org == org]
            found |= zip(places, await self.encode([rows[place] for place in places], org), strict=True)
        return [found[place] for place in range(len(rows))]

    def encode_at_once(self, row: InboxRow) -> InboxRow:
        """An inbox row as the database gets it, where nothing can be awaited. Raises CodecError if the codec waits."""
        [encoded] = cast("list[InboxRow]", finish_at_once(self.encode([row], row.org)))
        return encoded


# --- a batch ------------------------------------------------------------------------------------------------------------

_Part: TypeAlias = tuple[Any, str, bool]
"""Where a row stands in what is written: the object, its field, and whether that is a list."""


_LISTS: Final = ("outgoing", "readdressed", "dead_letters", "requests", "publications")
"""The lists of rows that writes of both kinds have."""


def _list_parts(turn: TurnWrite | UnroutedWrite) -> list[_Part]:
    """All fields of a write that hold rows with payloads."""
    if isinstance(turn, UnroutedWrite):
        return [(turn, name, True) for name in _LISTS if getattr(turn, name)]
    parts: list[_Part] = [(turn, "row", False)]
    if turn.history is not None:
        parts.append((turn, "history", False))
    if turn.snapshot is not None:
        parts.append((turn, "snapshot", False))
    names = (*_LISTS, "offered", "tasks", "completed_tasks")
    return parts + [(turn, name, True) for name in names if getattr(turn, name)]


class EncodedTransaction:
    """A transaction of a store behind a codec: what is not here goes to the store's own."""

    def __init__(self, bare: Transaction, rows: _RowCodec) -> None:
        self.bare = bare
        self.decodes = True
        """Whether payloads that are read are decoded; those that are written and plain are encoded in any case."""
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)

    async def claim(self, claim: Claim) -> Claimed:
        """As `Transaction.claim`, with the payloads of its rows decoded."""
        claimed = await self.bare.claim(claim)
        if not self.decodes:
            return claimed
        claimed.rows = await self._decode_by_id(claimed.rows)
        claimed.inbox = await self._rows.decode(claimed.inbox)
        return claimed

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        """As `Transaction.read_history`, with the payloads of its rows decoded."""
        found = await self.bare.read_history(after)
        if not self.decodes:
            return found
        decoded = iter(await self._rows.decode([row for rows in found.values() for row in rows]))
        return {execution_id: [next(decoded) for _ in rows] for execution_id, rows in found.items()}

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        """As `Transaction.read_snapshots`, with their payloads decoded."""
        found = await self.bare.read_snapshots(execution_ids)
        return dict(zip(found, await self._rows.decode(list(found.values())), strict=True)) if self.decodes else found

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        """As `Transaction.read_rows`, with the payloads of its rows decoded."""
        return await self._decode_by_id(await self.bare.read_rows(execution_ids))

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        """As `Transaction.read_requests`, with the payloads of replies decoded."""
        found = await self.bare.read_requests(keys, now)
        return dict(zip(found, await self._rows.decode(list(found.values())), strict=True)) if self.decodes else found

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        """As `Transaction.lock_tasks`, with the payloads of its rows decoded."""
        found = await self.bare.lock_tasks(keys)
        rows = [row for row in found.values() if row is not None]
        return found | {(row.execution_id, row.number): row for row in await self._rows.decode(rows)}

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """As `Transaction.read_latest`, with the payloads of its rows decoded."""
        row = await self.bare.read_latest(org, workflow_id)
        return await self._rows.decode_one(row) if self.decodes else row

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        """As `Transaction.write`, with encoded payloads; what was given is left as it is."""
        turns, unrouted = [replace(turn) for turn in turns], replace(unrouted)
        parts = [part for turn in turns for part in _list_parts(turn)] + _list_parts(unrouted)
        await self._encode_parts(parts)
        return await self.bare.write(turns, unrouted)

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        """As `Publishing.read_outbox`, with the payloads of its rows decoded."""
        rows = await self.bare.read_outbox(limit, skip)
        return await self._rows.decode(rows) if self.decodes else rows

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        """As `Publishing.read_kept_messages`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.read_kept_messages(ids))

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        """As `Publishing.read_unstarted`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.read_unstarted(names, now, limit, after))

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        """As `Publishing.publish`, with encoded payloads. What waits select by is plain: names, keys and fields."""
        encoded = []
        for item in items:
            [row] = await self._rows.encode([item.row], item.row.org)
            starts = await self._rows.encode(list(item.starts), item.row.org)
            encoded.append(replace(item, row=row, starts=starts))
        return await self.bare.publish(encoded, now)

    async def _encode_parts(self, parts: Sequence[_Part]) -> None:
        """Encode the rows in these places, all of an organisation at once."""
        places: dict[str, list[tuple[_Part, int]]] = {}
        for part in parts:
            holder, name, is_list = part
            rows = getattr(holder, name) if is_list else [getattr(holder, name)]
            for position, row in enumerate(rows):
                org = holder.row.org if isinstance(row, HistoryRow) else row.org
                places.setdefault(org, []).append((part, position))
            if is_list:
                setattr(holder, name, list(rows))
        for org, found in places.items():
            rows = [_get_row(part, position) for part, position in found]
            for (part, position), row in zip(found, await self._rows.encode(rows, org), strict=True):
                _set_row(part, position, row)

    async def _decode_by_id(self, rows: dict[str, ExecutionRow]) -> dict[str, ExecutionRow]:
        return dict(zip(rows, await self._rows.decode(list(rows.values())), strict=True)) if self.decodes else rows


def _get_row(part: _Part, position: int) -> Any:
    holder, name, is_list = part
    return getattr(holder, name)[position] if is_list else getattr(holder, name)


def _set_row(part: _Part, position: int, row: Any) -> None:
    holder, name, is_list = part
    if is_list:
        getattr(holder, name)[position] = row
    else:
        setattr(holder, name, row)


# --- human tasks --------------------------------------------------------------------------------------------------------


class EncodedTasks:
    """The human tasks of a store behind a codec: what is shown, filled in and commented goes through it."""

    def __init__(self, bare: Tasks, rows: _RowCodec) -> None:
        self._bare = bare
        self._rows = rows

    async def find(self, org: str, task_id: str) -> TaskRow | None:
        """As `Tasks.find`, with its payloads decoded."""
        return await self._rows.decode_one(await self._bare.find(org, task_id))

    async def search(self, query: TaskFilter) -> list[TaskRow]:
        """As `Tasks.search`, with their payloads decoded."""
        return await self._rows.decode(await self._bare.search(query))

    async def list_events(self, org: str, task_id: str) -> list[TaskEventRow]:
        """As `Tasks.list_events`, with their payloads decoded."""
        return await self._rows.decode(await self._bare.list_events(org, task_id))

    async def change(self, change: TaskChange, call: KeyedCall | None = None) -> ChangeOutcome:
        """As `Tasks.change`, with its payloads encoded."""
        org = change.row.org
        [row] = await self._rows.encode([change.row], org)
        [event] = await self._rows.encode([change.event], org)
        return await self._bare.change(TaskChange(row, event), call)


# --- the store ----------------------------------------------------------------------------------------------------------


class EncodedQuestions:
    """Questions behind a codec: arguments and answers."""

    def __init__(self, bare: Questions, rows: _RowCodec) -> None:
        self._bare = bare
        self._rows = rows
        self.take = bare.take
        self.remove = bare.remove

    async def put(self, row: QuestionRow, now: Instant) -> None:
        """As `Questions.put`, with the arguments encoded."""
        [encoded] = await self._rows.encode([row], row.org)
        await self._bare.put(encoded, now)

    async def list_open(
        self, now: Instant, workflows: Collection[str], after: QuestionRow | None = None, limit: int = 100
    ) -> list[QuestionRow]:
        """As `Questions.list_open`, with the arguments decoded."""
        return await self._rows.decode(await self._bare.list_open(now, workflows, after, limit))

    async def answer(self, row: AnswerRow) -> None:
        """As `Questions.answer`, with the answer encoded."""
        [encoded] = await self._rows.encode([row], row.org)
        await self._bare.answer(encoded)

    async def read_answers(self, ids: Collection[str]) -> list[AnswerRow]:
        """As `Questions.read_answers`, with the answers decoded."""
        return await self._rows.decode(await self._bare.read_answers(ids))


class EncodedStore:
    """A store behind a codec: what is not here goes to the store itself."""

    def __init__(self, bare: Store, codec: PayloadCodec, *, only_shows: bool = False) -> None:
        self.bare = bare
        """The store without the codec."""
        self._codec = codec
        self._rows = _RowCodec(codec, only_shows=only_shows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)

    @property
    def shown(self) -> EncodedStore:
        """The same store for those who only show what is in it."""
        return EncodedStore(self.bare, self._codec, only_shows=True)

    async def open(self) -> None:
        """As `Store.open`. From now on messages, which no codec sees, quote no value."""
        await self.bare.open()
        CONFIDENCE.begin(self)

    async def close(self) -> None:
        """As `Store.close`. Messages may quote values again."""
        await self.bare.close()
        CONFIDENCE.end(self)

    def abandon(self) -> None:
        """Let the database go at once, where the store can do that, as the end of the process does."""
        self.bare.abandon()  # type: ignore[attr-defined]  # who calls it has looked
        CONFIDENCE.end(self)

    @property
    def tasks(self) -> Tasks:
        """As `Store.tasks`, with what people see and write behind the codec."""
        return EncodedTasks(self.bare.tasks, self._rows)

    @property
    def definitions(self) -> Definitions:
        """As `Store.definitions`, with what start timers give to executions behind the codec."""
        return cast("Definitions", EncodedDefinitions(self.bare.definitions, self._rows.encode))

    @property
    def questions(self) -> Questions:
        """As `Store.questions`, with arguments and answers behind the codec."""
        return EncodedQuestions(self.bare.questions, self._rows)

    # --- batches ---

    async def begin(self) -> Transaction:
        """As `Store.begin`: the transaction encodes and decodes."""
        return cast("Transaction", EncodedTransaction(await self.bare.begin(), self._rows))

    async def was_committed(self, transaction: Transaction) -> bool:
        """As `Store.was_committed`, for a transaction of this store."""
        return await self.bare.was_committed(cast("EncodedTransaction", transaction).bare)

    async def deliver(self, rows: Sequence[InboxRow]) -> list[bool]:
        """As `Store.deliver`, with the payloads of its rows encoded."""
        return await self.bare.deliver(await self._rows.encode_by_org(rows))

    async def set_status(
        self, org: str, execution_id: str, expected_version: int, row: ExecutionRow, call: KeyedCall | None = None
    ) -> bool:
        """As `Store.set_status`, with the payloads of its rows encoded."""
        [encoded] = await self._rows.encode([row], org)
        return await self.bare.set_status(org, execution_id, expected_version, encoded, call)

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        """As `Store.change_open`, which leaves values alone."""
        return await self.bare.change_open(org, target, change, call, by_workflow_id=by_workflow_id)

    async def change_schedule(self, change: ScheduleChange, call: KeyedCall | None = None) -> int:
        """As `Store.change_schedule`, with the payloads of its rows encoded."""
        if change.row is not None:
            [encoded] = await self._rows.encode([change.row], change.org)
            change = replace(change, row=encoded, starts=await self._rows.encode_by_org(change.starts))
        return await self.bare.change_schedule(change, call)

    async def find_schedule(self, org: str, schedule_id: str) -> ScheduleRow | None:
        """As `Store.find_schedule`, with the payloads of its rows decoded."""
        return await self._rows.decode_one(await self.bare.find_schedule(org, schedule_id))

    async def list_schedules(
        self, org: str, limit: int = 100, after: str = "", owner: str | None = None
    ) -> list[ScheduleRow]:
        """As `Store.list_schedules`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_schedules(org, limit, after, owner))

    # --- users' transactions ---

    async def enlist(self, connection: Any, rows: Sequence[InboxRow]) -> None:
        """As `Store.enlist`, with the payloads of its rows encoded."""
        await self.bare.enlist(connection, await self._rows.encode_by_org(rows))

    async def transact(self, work: UserFunction[T], once: Once | None = None) -> T:
        """As `Store.transact`, with encoded payloads. In a plain function the codec must answer without waiting."""
        if iscoroutinefunction(work):
            return await self.bare.transact(self._encode_afterwards(work), once)

        def encode_each(connection: Any, put: Callable[[InboxRow], None]) -> T | Awaitable[T]:
            return work(connection, lambda row: put(self._rows.encode_at_once(row)))

        encode_each.__qualname__ = work.__qualname__
        return await self.bare.transact(encode_each, once)

    def _encode_afterwards(self, work: Callable[..., Awaitable[T]]) -> UserFunction[T]:
        async def encode_all(connection: Any, put: Callable[[InboxRow], None]) -> T:
            rows: list[InboxRow] = []
            result = await work(connection, rows.append)
            for row in await self._rows.encode_by_org(rows):
                put(row)
            return result

        encode_all.__qualname__ = work.__qualname__
        return encode_all

    # --- reading ---

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        """As `Store.find_execution`, with the payloads of its rows decoded."""
        return await self._rows.decode_one(await self.bare.find_execution(org, execution_id))

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        """As `Store.find_latest`, with the payloads of its rows decoded."""
        return await self._rows.decode_one(await self.bare.find_latest(org, workflow_id))

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        """As `Store.list_executions`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_executions(query))

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        """As `Store.search_executions`, with the payloads of its rows decoded."""
        page = await self.bare.search_executions(query)
        return ExecutionPage(await self._rows.decode(page.rows), page.end, page.end_value)

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        """As `Store.load_history`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.load_history(execution_id, after, limit))

    async def load_snapshot(self, execution_id: str) -> SnapshotRow | None:
        """As `Store.load_snapshot`, with its payload decoded."""
        return await self._rows.decode_one(await self.bare.load_snapshot(execution_id))

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        """As `Store.load_last_turn`, with the payloads of its rows decoded."""
        return await self._rows.decode_one(await self.bare.load_last_turn(execution_id))

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        """As `Store.list_inbox`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_inbox(org, execution_id, workflow_id, limit))

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        """As `Store.list_dead_letters`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_dead_letters(org, limit, after))

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        """As `Store.list_orphans`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_orphans(alive, limit, after))

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        """As `Store.list_held`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_held(node, limit, after))

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        """As `Store.list_blocked`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_blocked(limit, after))

    async def list_pending(
        self, org: str, kind: str, name: str, now: Instant, limit: int = 100, after: int = 0
    ) -> list[PendingRow]:
        """As `Publications.list_pending`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_pending(org, kind, name, now, limit, after))

    # --- offers ---

    async def take_offers(self, node: str, routes: Collection[str], limit: int) -> list[ActivityRow]:
        """As `Store.take_offers`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.take_offers(node, routes, limit))

    async def list_lost_offers(self, alive: Collection[str], limit: int) -> list[ActivityRow]:
        """As `Store.list_lost_offers`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_lost_offers(alive, limit))

    async def list_offers(self, execution_id: str) -> list[ActivityRow]:
        """As `Store.list_offers`, with the payloads of its rows decoded."""
        return await self._rows.decode(await self.bare.list_offers(execution_id))
