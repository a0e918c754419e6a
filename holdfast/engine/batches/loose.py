"""What a batch writes that belongs to no turn: rows of inboxes that nobody takes, and what their senders are told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.core import codec
from holdfast.core.children import refuse_child
from holdfast.core.envelopes import AnyEnvelope, Start
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.errors import HoldfastError
from holdfast.store.contract import DeadLetterRow, InboxRow, LooseWrite, Route


class Loose:
    """Gathers it."""

    def __init__(self, node: str, now: Instant, max_attempts: int) -> None:
        self._node = node
        self._now = now
        self._max_attempts = max_attempts
        self._rows: dict[int, InboxRow] = {}
        self.write = LooseWrite()

    def know(self, row: InboxRow) -> None:
        """A row that the batch holds: from now on its id is enough."""
        self._rows[row.id] = row

    def consume(self, *row_ids: int) -> None:
        """These are done with."""
        self.write.consumed.extend(row_ids)

    def send(self, org: str, execution_id: str, envelope: AnyEnvelope) -> None:
        """An envelope for an execution."""
        self.write.outgoing.append(InboxRow(org, execution_id, "", codec.encode(envelope)))

    def bury(self, row: InboxRow, reason: str, *, consume: bool = True) -> None:
        """A row goes to the dead letters."""
        if consume:
            self.consume(row.id)
        self.write.dead_letters.append(
            DeadLetterRow(row.org, row.execution_id, row.workflow_id, row.body, reason, self._node, self._now, row.attempts)
        )

    def bury_rows(self, row_ids: Sequence[int], reason: str) -> None:
        """These go to the dead letters."""
        for row_id in row_ids:
            self.bury(self._rows[row_id], reason)

    def fail_rows(self, row_ids: Sequence[int], error: Exception) -> None:
        """Handling these failed: they are tried again some times, then buried."""
        for row_id in row_ids:
            row = self._rows[row_id]
            failures = row.attempts + 1
            if failures < self._max_attempts:
                self.write.failed.append(row_id)
            else:
                reason = f"handling it failed {failures} times, at last with {type(error).__name__}: {error}"
                self.bury(msgspec.structs.replace(row, attempts=failures), reason)

    def reroute(self, row_id: int, route: Route) -> None:
        """An inbox row is for others: they will find it on that route."""
        if self._rows[row_id].route != route:
            self.write.rerouted.append((row_id, route))

    def readdress(self, row_id: int, execution_id: str, envelope: AnyEnvelope, route: Route) -> None:
        """What an inbox row brought waits for an execution from now on, behind all that does so already."""
        row = self._rows[row_id]
        self.consume(row_id)
        body = codec.encode(envelope)
        self.write.outgoing.append(InboxRow(row.org, execution_id, "", body, attempts=row.attempts, route=route))

    def is_by_workflow_id(self, row_id: int) -> bool:
        """Whether a row has no execution for a receiver."""
        return not self._rows[row_id].execution_id

    def refuse_row(self, row_id: int, envelope: AnyEnvelope, error: HoldfastError) -> None:
        """What came by the inbox for an execution that is not made: a parent hears of it; else there is nobody to tell."""
        if type(envelope) is Start and envelope.parent is not None:
            self.consume(row_id)
        else:
            self.bury(self._rows[row_id], error.message)

    def refuse_child(self, start: Start, org: str, failure: Failure) -> None:
        """Tell a parent that its child could not be started."""
        refused = refuse_child(start, failure)
        if refused is not None:
            self.send(org, *refused)
