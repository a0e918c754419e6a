"""What stores promise about pauses of whole workflows and queues.

Theory of operation
-------------------
Pauses are few rows, which every node keeps in memory, with the *settings number* that they were read with. Whoever pauses
or resumes raises the number in the same commit. A batch names the number by which it decided who takes turns
(`UnroutedWrite.settings`); if the stored one is another, all of its turns are lost, and are taken again after the node has
read the pauses anew. So nothing is asked for in each batch, and yet no turn is committed against a pause: `put_pause`
returns once every transaction has ended that wrote turns before it could see the new number. What belongs to these turns,
their children and the next runs of their chains, is written by more statements of the same transaction: once turns have
been written by a number, the transaction compares it no more.

The number is the time of the change where that is greater: a database that goes back to an earlier state never shows a
number again under which other pauses were known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from holdfast.core.instants import Instant
from holdfast.store.once import KeyedCall
from holdfast.store.rows import ExecutionRow

RowChange: TypeAlias = Callable[[ExecutionRow], ExecutionRow | None]
"""Makes another row of the row of an open execution; None: it is to stay as it is."""


class PauseKind(StrEnum):
    """What a pause holds up beside single executions, whose own rows say that they are paused."""

    WORKFLOW = "workflow"
    QUEUE = "queue"


class PauseRow(msgspec.Struct, frozen=True, gc=False):
    """A workflow or a queue of an org that is paused, or was."""

    org: str
    kind: str
    name: str
    at: Instant
    by: str = ""
    reason: str = ""
    ended_at: Instant | None = None
    """When it ended; None while it holds. Those that have ended are kept, and count nowhere but for what is stale."""


class Settings(msgspec.Struct, frozen=True, gc=False):
    """All pauses that hold, and the number that stands for them."""

    number: int
    pauses: Sequence[PauseRow]


class Pauses(Protocol):
    """Pauses of whole workflows and queues, which all nodes keep to, and of single executions."""

    async def change_open(
        self, org: str, target: str, change: RowChange, call: KeyedCall | None = None, *, by_workflow_id: bool = False
    ) -> bool:
        """Replace the row of an open execution outside of a batch, and nothing else, by what `change` makes of it.

        The row is held from before it is read: a batch that has it is waited for, and no turn comes in between, however
        busy the execution is. False if nobody is open under the execution id, or under the workflow id, or `change` returns
        None; then nothing changes. `change` gets values as they are stored, and must not touch them. May raise
        OutcomeUnknown; the stored version tells what became of it.
        """
        ...

    async def read_settings(self) -> Settings:
        """All pauses, sorted by org, kind and name, with their number; 0 if there never was one."""
        ...

    async def put_pause(self, row: PauseRow, call: KeyedCall | None = None) -> bool:
        """Pause a workflow or a queue; False if it is paused already: then nothing changes. Durable on return.

        When it returns, no transaction is under way any more that has written turns by an earlier settings number; but a
        transaction that does not end is waited for no longer than some seconds. May raise OutcomeUnknown.
        """
        ...

    async def end_pause(self, org: str, kind: str, name: str, at: Instant, call: KeyedCall | None = None) -> bool:
        """End a pause; False if there is none. Durable on return. May raise OutcomeUnknown; doing it again does no harm.

        That it held until then is kept, see `holdfast.store.stale`.
        """
        ...
