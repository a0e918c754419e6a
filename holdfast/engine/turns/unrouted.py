"""What a batch writes that belongs to no turn: inbox rows that no execution takes, and what their senders are told."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core import codec
from holdfast.core.children import refuse_child
from holdfast.core.effects import Refused
from holdfast.core.envelopes import ANSWERED, AnyEnvelope, Start, Update
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.publications import Publication, SubscriptionKind, canonical_fields
from holdfast.core.request_keys import RequestKey
from holdfast.core.safe_texts import count_noun
from holdfast.core.subscriptions import is_taken_by_one
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.request_keys import DEAD_LETTER, make_reply_row
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, UpdateFailed
from holdfast.store.contract import UnroutedWrite
from holdfast.store.publications import PublicationRow
from holdfast.store.rows import DeadLetterRow, InboxRow, RequestRow, Route


class DeadLetterRules(msgspec.Struct, frozen=True):
    """After how many failures an inbox row becomes a dead letter, and the node and time that the dead letter records."""

    node: str
    now: Instant
    max_attempts: int
    """How often handling an inbox row may fail before it becomes a dead letter."""


class UnroutedWrites:
    """Collects the writes of one batch that belong to no turn."""

    def __init__(self, rules: DeadLetterRules) -> None:
        self._rules = rules
        self.write = UnroutedWrite()
        self.discarded: list[DeadLetterRow] = []
        """What would have become dead letters, where the engine's `dead_letter_policy` discards those."""

    def begin_with(self, planned: UnroutedWrite) -> None:
        """Begin with what the plan of the batch writes beside its turns. It is copied: the plan stays as it is."""
        self.write = UnroutedWrite()
        for name in planned.__struct_fields__:
            if value := getattr(planned, name):
                setattr(self.write, name, list(value))

    def consume(self, arrival: Arrival) -> None:
        """Remove the inbox row that brought an arrival, if one did: it is handled."""
        if arrival.row is not None:
            self.write.consumed.append(arrival.row.id)

    def send(self, org: str, execution_id: str, envelope: AnyEnvelope, route: Route = "", arrived_at: Instant = 0) -> None:
        """Put an envelope into the inbox of an execution: one that is made now, unless it arrived earlier."""
        at = arrived_at or self._rules.now
        self.write.outgoing.append(InboxRow(org, execution_id, "", codec.encode(envelope), route=route, at=at))

    def remember(self, request: RequestRow) -> None:
        """Remember what a request with a key led to."""
        self.write.requests.append(request)

    def reply(self, org: str, key: RequestKey, execution_id: str, error: HoldfastError) -> None:
        """Keep for whoever waits for it, on whichever node, why an envelope was refused."""
        self.remember(make_reply_row(org, key, execution_id, Refused(error), self._rules.now))

    def dead_letter(self, row: InboxRow, reason: str) -> None:
        """Move an inbox row to the dead letters."""
        node, now = self._rules.node, self._rules.now
        self.write.consumed.append(row.id)
        self.write.dead_letters.append(
            DeadLetterRow(row.org, row.execution_id, row.workflow_id, row.body, reason, node, now, row.attempts)
        )
        self._tell_caller(row, reason)

    def _tell_caller(self, row: InboxRow, reason: str) -> None:
        """Whoever waits for the answer to what becomes a dead letter is told so, unless that was done."""
        try:
            envelope = codec.decode_envelope(row.body)
        except (CorruptStore, NewerFormat):
            return
        if type(envelope) is Start:
            envelope = envelope.signal or envelope
        if not isinstance(envelope, ANSWERED):
            return
        key = envelope.request
        if not any((one.org, one.kind, one.key) == (row.org, key.kind, key.key) for one in self.write.requests):
            what = f"update '{envelope.name}'" if isinstance(envelope, Update) else f"a step of task {envelope.task_id}"
            error = UpdateFailed(
                f"Expected {what} to be handled, but it is a dead letter: {reason.rstrip('.')}. Have the cause removed, and "
                "make the call anew, with another request id.",
                type=DEAD_LETTER,
            )
            self.reply(row.org, key, row.execution_id, error)

    def discard_dead_letters(self) -> None:
        """Write no dead letters, as the engine's `dead_letter_policy` may say: that there were some is only in the log."""
        self.discarded.extend(self.write.dead_letters)
        self.write.dead_letters.clear()

    def fail(self, arrivals: Iterable[Arrival], error: Exception) -> None:
        """Count a failure against the inbox rows among these arrivals; those that failed too often become dead letters."""
        for arrival in arrivals:
            row = arrival.row
            if row is None:
                continue
            failures = row.attempts + 1
            if failures < self._rules.max_attempts:
                self.write.failed.append(row.id)
            else:
                reason = f"handling it failed {count_noun(failures, 'time')}, at last with {type(error).__name__}: {error}"
                self.dead_letter(msgspec.structs.replace(row, attempts=failures), reason)

    def reroute(self, row: InboxRow, route: Route) -> None:
        """Let an inbox row go by another route from now on: the nodes that take its execution find it there."""
        if row.route != route:
            self.write.rerouted.append((row.id, route))

    def readdress(self, row: InboxRow, execution_id: str, envelope: AnyEnvelope, route: Route) -> None:
        """Let what an inbox row brought wait for an execution. It keeps its place in the order of arrival."""
        self.write.readdressed.append(make_readdressed(row, execution_id, envelope, route))

    def give_back(self, org: str, publication: Publication, receiver: str = "") -> None:
        """Let something be published again that came too late, if one receiver was to get it; all others have had it.

        `receiver`: the execution for which it came too late.
        """
        if is_taken_by_one(publication):
            is_event = publication.kind is SubscriptionKind.EVENT
            fields = canonical_fields(bytes(publication.value.data)) if is_event else {}
            self.write.publications.append(
                PublicationRow(org, codec.encode(publication), fields, receiver, is_returned=True)
            )

    def refuse(self, arrival: Arrival, error: HoldfastError) -> None:
        """Refuse what came by the inbox for an execution that is not made: a parent is told; else it is a dead letter."""
        row, envelope = arrival.row, arrival.envelope
        if row is None:
            return
        if type(envelope) is Start and envelope.parent is not None:
            self.consume(arrival)
        else:
            self.dead_letter(row, error.message)

    def refuse_child(self, start: Start, org: str, failure: Failure) -> None:
        """Tell a parent that its child could not be started."""
        refused = refuse_child(start, failure)
        if refused is not None:
            self.send(org, *refused)


def make_readdressed(row: InboxRow, execution_id: str, envelope: AnyEnvelope, route: Route) -> InboxRow:
    """An inbox row as it is to become where what it brought waits for an execution."""
    changes = {"execution_id": execution_id, "workflow_id": "", "body": codec.encode(envelope), "route": route}
    return msgspec.structs.replace(row, **changes)
