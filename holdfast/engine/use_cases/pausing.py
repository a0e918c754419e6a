"""Pausing and resuming one execution, a workflow or a queue; and what is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from holdfast.core.ids import check_identifier
from holdfast.core.instants import to_datetime
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import from_row, to_row
from holdfast.engine.use_cases.delivery import check_reason
from holdfast.engine.views import ExecutionInfo, Pause
from holdfast.errors import InvalidArguments, StoreUnavailable
from holdfast.store.pauses import PauseKind, PauseRow

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.contract import Store
    from holdfast.store.once import KeyedCall
    from holdfast.store.rows import ExecutionRow

LONGEST_TRY: Final = 30.0
"""Seconds for which it is tried again where each open run under a workflow id is followed by another meanwhile."""
LONGEST_BY: Final = 500
_FIRST_WAIT: Final = 0.001
_LONGEST_WAIT: Final = 0.02
_PAUSABLE: Final = (Status.RUNNING, Status.SUSPENDED)


class Pausing:
    """Pauses and resumes.

    `on_paused` and `on_resumed` are told of executions, with their versions, `follow` after pauses of workflows or queues.
    """

    def __init__(
        self,
        store: Store,
        delivery: Delivery,
        clock: Clock,
        on_paused: Callable[[str, int], None],
        on_resumed: Callable[[str, int], None],
        follow: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._clock = clock
        self._on_paused = on_paused
        self._on_resumed = on_resumed
        self._follow = follow

    # --- one execution ---

    async def pause(self, org: str, target: str, reason: str, by: str, request_id: str | None) -> bool:
        """Let an execution take no turns; False if it is closed, blocked, or paused already. Raises ExecutionNotFound."""
        check_reason(reason)
        _check_by(by)
        return await self._change(org, target, "pause", request_id, Paused(reason, by))

    async def resume(self, org: str, target: str, request_id: str | None) -> bool:
        """Let a paused execution go on; False if it is not paused. Raises ExecutionNotFound."""
        return await self._change(org, target, "resume", request_id, None)

    async def _change(self, org: str, target: str, verb: str, request_id: str | None, pause: Paused | None) -> bool:
        """Change the status between two turns: the store holds the row while it is read and written."""
        began, wait = asyncio.get_running_loop().time(), _FIRST_WAIT
        while True:
            row = await self._delivery.find_or_raise(org, target, verb)
            call = self._make_call(org, verb, request_id, target, row.execution_id)
            if not _may_change(row, pause):
                return call is not None and await self._store.remember(call, answer=0) == 1
            change = _StatusChange(pause, self._clock)
            tried = None if call is None else msgspec.structs.replace(call, remembers_refusal=False)
            by_workflow_id = row.execution_id != target
            if await self._store.change_open(org, target, change, tried, by_workflow_id=by_workflow_id):
                if change.made is not None:  # else the call was answered before
                    tell = self._on_resumed if pause is None else self._on_paused
                    tell(change.made.execution_id, change.made.state_version)
                return True
            if asyncio.get_running_loop().time() - began > LONGEST_TRY:
                raise StoreUnavailable(
                    f"Expected to {verb} execution '{target}', but its state changed each time that was tried. Try again."
                )
            await asyncio.sleep(wait)  # it closed meanwhile, or somebody else was first
            wait = min(2 * wait, _LONGEST_WAIT)

    # --- workflows and queues ---

    async def pause_all(self, org: str, kind: PauseKind, name: str, reason: str, by: str, request_id: str | None) -> bool:
        """Let no execution of a workflow or queue take a turn; False if it is paused already.

        A name that nobody knows may be one of later: it is paused too, and warned of.
        """
        check_identifier(org, "the org")
        check_identifier(name, f"the name of the {kind}")
        check_reason(reason)
        _check_by(by)
        row = PauseRow(org, kind.value, name, self._clock.now(), by, reason)
        call = self._make_call(org, f"pause_{kind}", request_id, name)
        is_new = await self._store.put_pause(row, call)
        await self._follow()
        if is_new:
            await self._delivery.unknown_names.warn_of_pause(org, kind, name)
        return is_new

    async def resume_all(self, org: str, kind: PauseKind, name: str, request_id: str | None) -> bool:
        """Let the executions of a workflow or queue go on; False if it is not paused."""
        check_identifier(org, "the org")
        check_identifier(name, f"the name of the {kind}")
        call = self._make_call(org, f"resume_{kind}", request_id, name)
        is_ended = await self._store.end_pause(org, kind.value, name, self._clock.now(), call)
        await self._follow()
        return is_ended

    async def list(self, org: str) -> list[Pause]:
        """The workflows and queues of an org that are paused, sorted by kind and name."""
        check_identifier(org, "the org")
        return await list_pauses(self._store, org)

    def _make_call(
        self, org: str, kind: str, request_id: str | None, scope: str, execution_id: str = ""
    ) -> KeyedCall | None:
        return self._delivery.make_call(org, kind, request_id, scope, execution_id)


class Paused(msgspec.Struct, frozen=True):
    """What is noted of a pause."""

    reason: str
    by: str


class _StatusChange:
    """Makes the row of a paused execution, or of one that goes on, from its row; keeps what it made."""

    def __init__(self, pause: Paused | None, clock: Clock) -> None:
        self._pause = pause
        self._clock = clock
        self.made: ExecutionRow | None = None

    def __call__(self, row: ExecutionRow) -> ExecutionRow | None:
        if not _may_change(row, self._pause):
            return None
        execution, now = from_row(row), self._clock.now()
        if self._pause is not None:
            execution.pause(now, self._pause.by, self._pause.reason)
        else:
            execution.unpause(now)
        execution.state_version += 1
        self.made = to_row(execution, row.route)
        return self.made


def _may_change(row: ExecutionRow, pause: Paused | None) -> bool:
    """Whether an execution can be paused now or, without a pause, can go on."""
    return row.status in (_PAUSABLE if pause is not None else (Status.PAUSED,))


async def list_pauses(store: Store, org: str) -> list[Pause]:
    """The workflows and queues of an org that are paused, sorted by kind and name."""
    settings = await store.read_settings()
    return [to_pause(row) for row in settings.pauses if row.org == org]


async def add_pauses(store: Store, info: ExecutionInfo) -> ExecutionInfo:
    """The info of an open execution with the pauses of its workflow and its queue."""
    if info.closed_at is not None:
        return info
    names = {("workflow", info.workflow), ("queue", info.queue)}
    found = [pause for pause in await list_pauses(store, info.org) if (pause.kind, pause.name) in names]
    return msgspec.structs.replace(info, pauses=(*info.pauses, *found)) if found else info


def to_pause(row: PauseRow) -> Pause:
    """A pause of a workflow or a queue as it is shown."""
    kind: Literal["queue", "workflow"] = "queue" if row.kind == PauseKind.QUEUE else "workflow"
    return Pause(org=row.org, kind=kind, name=row.name, since=to_datetime(row.at), by=row.by, reason=row.reason)


def _check_by(by: str) -> None:
    if not isinstance(by, str) or len(by) > LONGEST_BY or not by.isprintable():
        raise InvalidArguments(
            f"Expected by=… to say who pauses, in at most {LONGEST_BY} printable characters, but it is {by!r}."
        )
