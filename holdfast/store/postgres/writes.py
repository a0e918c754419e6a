"""How a batch of turns becomes rows: versions first, then only the winners' rows; one statement per table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple

from holdfast.core.lifecycle import Status
from holdfast.store.columns import encode_nodes, from_execution_row
from holdfast.store.contract import TurnWrite, UnroutedWrite, find_taken
from holdfast.store.postgres.incidents import put_definition_attributes, write_repairs
from holdfast.store.postgres.queues import change_attributes, write_envelopes, write_offers, write_timers
from holdfast.store.postgres.subscribing import Subscriber, settle, write_publications
from holdfast.store.postgres.tasks import find_busy, write_tasks
from holdfast.store.wait_matching import lose_chains

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

_PLAIN: Final[Mapping[str, str]] = {status: status.value for status in Status}
_STATUS: Final = 6
"""Where it stands in a row."""
_NO_EVENTS: Final = (None,) * 5


class BatchWriter:
    """Writes one batch within an open transaction."""

    def __init__(self, connection: Connection, sql: Mapping[str, str], *, has_passed: bool = False) -> None:
        self._connection = connection
        self._sql = sql
        self.has_written = False
        self.transaction_id: str | None = None
        self.has_passed = has_passed
        """Whether turns were written by the settings number: what the transaction writes next belongs to them."""
        self._has_ends = False
        """Whether something is kept for executions that ended, perhaps, or is to start then."""

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        """Write everything but the lost turns; returns the executions of those."""
        lost: set[str] = set()
        subscriber: Subscriber | None = None
        given = turns
        if any(turn.subscriptions or turn.ended_subscriptions for turn in turns):
            subscriber = Subscriber(self._connection, self._sql)
            lost |= await subscriber.prepare(turns)
            if lost:
                lose_chains(turns, lost)
            given = [turn for turn in turns if turn.row.execution_id not in lost]
        if any(turn.task_changes for turn in given):
            lost |= await find_busy(self._connection, self._sql, given)
            given = [turn for turn in given if turn.row.execution_id not in lost]
        stored = [turn for turn in given if turn.expected_version is not None]
        starts = [turn for turn in given if turn.expected_version is None]
        closing = [turn for turn in turns if turn.row.closed_at is not None]
        taken = sorted(find_taken(turns, unrouted)) if closing else []
        if stored and closing:
            stored = await self._escalate(stored, lost)
        if stored:
            await self._update(stored, taken, lost, unrouted.settings)
        if starts:  # after the closings, so that a workflow id is free for the execution that follows
            await self._insert(starts, taken, lost, unrouted.settings)
        others = [turn for turn in turns if turn.row.execution_id not in lost] if lost else turns
        if subscriber is not None:
            await subscriber.write(others, unrouted.most_subscriptions)
        if self._has_ends:  # behind those who wait: what they get starts nothing
            await settle(self._connection, self._sql, others, unrouted)
        # Whoever closes ends its timers and offers with that: it begins none.
        going_on = [turn for turn in others if turn.row.closed_at is None] if closing else others
        # Offers before timers, as they are taken: else those who take and those who withdraw could wait for each other.
        self.has_written |= await write_offers(self._connection, self._sql, going_on)
        self.has_written |= await write_timers(self._connection, self._sql, going_on)
        with_tasks = [turn for turn in others if turn.tasks or turn.task_changes]
        if with_tasks:
            self.has_written |= await write_tasks(self._connection, self._sql, with_tasks)
        rare = [turn for turn in others if turn.has_rare]
        if rare:
            await change_attributes(self._connection, self._sql, rare)
            await write_repairs(self._connection, self._sql, rare)
        self.has_written |= await write_envelopes(self._connection, self._sql, [*others, unrouted], unrouted)
        self.has_written |= await write_publications(self._connection, self._sql, [*others, unrouted])
        return lost

    async def _escalate(self, turns: Sequence[TurnWrite], lost: set[str]) -> list[TurnWrite]:
        """Exclude those who deliver from the executions that close; which turns may go on."""
        closing = [turn.row.execution_id for turn in turns if turn.row.closed_at is not None]
        if closing:
            locked = {execution_id for (execution_id,) in await self._connection.fetch(self._sql["escalate"], closing)}
            lost.update(execution_id for execution_id in closing if execution_id not in locked)
        return [turn for turn in turns if turn.row.execution_id not in lost]

    async def _update(self, turns: Sequence[TurnWrite], taken: Sequence[int], lost: set[str], settings: int | None) -> None:
        values = []
        for turn in turns:
            row, history = turn.row, turn.history
            values.append(
                (
                    row.execution_id,
                    row.org,
                    turn.expected_version,
                    _PLAIN.get(row.status, row.status),
                    row.state_version,
                    row.sequence,
                    encode_nodes(row.nodes),
                    row.updated_at,
                    row.closed_at,
                    row.code_version,
                    row.details,
                    row.route,
                    *(_NO_EVENTS if history is None else astuple(history)[1:]),
                )
            )
        expected = self._expect(settings)
        rows = await self._connection.fetch(self._sql["update_executions"], *zip(*values, strict=True), taken, expected)
        if len(rows) < len(turns):
            won = {execution_id for execution_id, *_ in rows}
            lost.update(turn.row.execution_id for turn in turns if turn.row.execution_id not in won)
        if rows:
            self.has_written, self.transaction_id = True, rows[0][1]
            self.has_passed |= settings is not None
            self._has_ends |= any(has_ends for _, _, has_ends in rows)

    def _expect(self, settings: int | None) -> int | None:
        """The settings number that the next statement compares: none any more, once one has written by it.

        Parents and children, or the runs of a chain, are written by several statements: no half of them may be lost because
        somebody pauses or deploys in between. Whoever pauses waits for transactions that have written.
        """
        return None if self.has_passed else settings

    async def _insert(self, turns: Sequence[TurnWrite], taken: Sequence[int], lost: set[str], settings: int | None) -> None:
        """Insert, then see which starts are lost: their execution id is taken, or their workflow id is open."""
        by_id: dict[str, int] = {}
        for group in _split_by_workflow_id(turns):
            values = [_with_plain_status(from_execution_row(turn.row)) for turn in group]
            expected = self._expect(settings)
            rows = await self._connection.fetch(self._sql["insert_executions"], *zip(*values, strict=True), taken, expected)
            by_id.update((execution_id, number) for execution_id, number, *_ in rows)
            if rows:
                self.has_written, self.transaction_id = True, rows[0][2]
                self.has_passed |= settings is not None
                self._has_ends |= any(row[3] for row in rows)
        events = []
        for turn in turns:
            number, history = by_id.get(turn.row.execution_id), turn.history
            if number is None:
                lost.add(turn.row.execution_id)
            elif history is not None:
                events.append((number, history.first, history.count, history.at, history.schema, history.body))
        if events:
            await self._connection.fetch(self._sql["append_events"], *zip(*events, strict=True))
        begun = (turn.row for turn in turns if turn.row.execution_id in by_id)
        await put_definition_attributes(self._connection, self._sql, begun)


def _with_plain_status(values: list[Any]) -> list[Any]:
    values[_STATUS] = _PLAIN.get(values[_STATUS], values[_STATUS])
    return values


def _split_by_workflow_id(turns: Sequence[TurnWrite]) -> list[list[TurnWrite]]:
    """All at once, unless one follows an open one with the same workflow id: then the order decides, in two statements.

    Runs that close as they begin, one after the other, do not stand in each other's way.
    """
    groups: list[list[TurnWrite]] = [[]]
    places: dict[tuple[str, str], int] = {}
    for turn in turns:
        key = (turn.row.org, turn.row.workflow_id)
        place = places.get(key, 0)
        if place == len(groups):
            groups.append([])
        groups[place].append(turn)
        if turn.row.closed_at is None:
            places[key] = place + 1
    return groups
