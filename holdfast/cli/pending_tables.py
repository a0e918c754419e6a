"""What an open execution waits for, on a terminal: one table for each kind, and what failed with its stack trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.tables import clean, make_console, shorten, show_json, show_rows, show_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from holdfast.engine.pending import FailureInfo, PendingActivity, PendingWork

UNKNOWN = "where its code waits, and for which events, queues, locks and futures, is told with --module, which replays it"


def show_pending(pending: PendingWork, *, may_ask_code: bool = True) -> None:
    """Print what an execution waits for, leaving out what it does not wait for.

    `may_ask_code`: its code could be asked for more.
    """
    if pending.incidents:
        _show(
            "somebody to correct what went wrong",
            ("#", "element", "name", "kind", "reason"),
            [(one.number, one.element, one.element_name, one.kind, one.message) for one in pending.incidents],
        )
    if pending.activities:
        _show_activities(pending.activities)
    if pending.timers:
        rows = [(one.number, one.label, show_time(one.due), one.place or "") for one in pending.timers]
        _show("timers", ("#", "name", "due", "place"), rows)
    if pending.children:
        _show(
            "children",
            ("#", "name", "workflow id", "workflow", "status", "execution id"),
            [
                (
                    one.number,
                    one.label,
                    one.workflow_id,
                    one.workflow,
                    one.status.value if one.status else "",
                    one.execution_id,
                )
                for one in pending.children
            ],
        )
    if pending.signals:
        _show("signals", ("signal", "place"), [(one.name, one.place or "") for one in pending.signals])
    if pending.external_signals:
        _show(
            "answers to signals that it sent",
            ("#", "signal", "workflow id"),
            [(one.number, one.name, one.workflow_id) for one in pending.external_signals],
        )
    if pending.subscriptions:
        _show(
            "what others publish",
            ("#", "kind", "name", "key or fields", "place"),
            [
                (
                    one.number,
                    one.kind.value,
                    one.name,
                    one.key or ", ".join(f"{name}={value!r}" for name, value in one.where.items()),
                    one.place or "",
                )
                for one in pending.subscriptions
            ],
        )
    if pending.publications:
        _show(
            "answers to what it published",
            ("#", "kind", "name"),
            [(one.number, one.kind.value, one.name) for one in pending.publications],
        )
    if pending.local_waits:
        waits = [(one.what, one.place or "", one.task) for one in pending.local_waits]
        _show("what its own code has to bring", ("what", "place", "task"), waits)
    if may_ask_code and not pending.is_code_known:
        make_console().print(f"\n({UNKNOWN})", soft_wrap=True)


def show_trouble(failure: FailureInfo) -> None:
    """Print the stack trace of what holds an open execution up, and what led to it."""
    if failure.trace:
        make_console().print("\nwhere the last error was raised:")
        show_trace(failure.trace)
    _show_cause(failure)


def show_trace(trace: str, indent: str = "  ") -> None:
    """Print a stack trace, the innermost line last."""
    console = make_console()
    for line in trace.splitlines():
        console.print(f"{indent}{clean(line)}", soft_wrap=True)


def _show_activities(activities: tuple[PendingActivity, ...]) -> None:
    _show(
        "activities",
        ("#", "activity", "name", "element", "state", "attempt", "since", "next try", "queue", "on node"),
        [
            (
                one.number,
                one.name,
                one.label,
                one.element,
                one.state.value,
                one.attempt,
                show_time(one.started_at or one.scheduled_at, "seconds"),
                _show_optional(one.next_try),
                one.queue,
                one.node or "",
            )
            for one in activities
        ],
    )
    console = make_console()
    for one in activities:
        if one.heartbeat is not None:
            beat = shorten(show_json(one.heartbeat))
            console.print(f"\nheartbeat of activity {one.number} ({clean(one.name)}): {clean(beat)}", soft_wrap=True)
        if one.last_failure is not None:
            title = f"last failure of activity {one.number} ({one.name}), {one.failures} so far"
            show_failure(title, one.last_failure)


def show_failure(title: str, failure: FailureInfo) -> None:
    """Print a failure with its details and its stack trace."""
    console = make_console()
    console.print(f"\n{clean(title)}: {clean(str(failure))}", soft_wrap=True)
    if failure.details is not None:
        console.print(f"  details: {clean(shorten(show_json(failure.details)))}", soft_wrap=True)
    show_trace(failure.trace)
    _show_cause(failure)


def _show_cause(failure: FailureInfo) -> None:
    if failure.cause is not None:
        show_failure("caused by", failure.cause)


def _show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without the columns that are empty throughout."""
    kept = [place for place, _ in enumerate(columns) if any(row[place] not in ("", None) for row in rows)]
    make_console().print(f"\nwaits for {title}:")
    show_rows([columns[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _show_optional(at: datetime | None) -> str:
    return "" if at is None else show_time(at, "seconds")
