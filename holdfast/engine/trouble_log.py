"""What the log tells people of executions and their activities: one function for each event of `log_events`.

Called after the commit, by the node that committed, and never for a replay. A failure comes with its trace: in the message,
for those who read a plain log, and as the field `trace`. Values of users are not logged; messages of their exceptions are.
A handler that raises must not stop what follows from a commit, so nothing is raised from here.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.envelopes import Signal
from holdfast.core.failures import list_told
from holdfast.core.instants import SECOND
from holdfast.core.payloads import hide_values
from holdfast.core.safe_texts import count_noun
from holdfast.core.troubles import ActivityEnded, AttemptFailed, AttemptTakenOver, LetterDiscarded
from holdfast.log_events import LogEvent, tag, tag_execution

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask, Turn
    from holdfast.core.execution import Execution
    from holdfast.core.failures import Failure
    from holdfast.core.troubles import ActivityAbout
    from holdfast.store.rows import DeadLetterRow

_engine_log: Final = logging.getLogger("holdfast.engine")
_activity_log: Final = logging.getLogger("holdfast.activities")


def tag_task(event: LogEvent, task: ActivityTask) -> dict[str, Any]:
    """The fields of a record about an attempt that this node runs."""
    return tag(
        event,
        org=task.org,
        workflow=task.workflow,
        workflow_id=task.workflow_id,
        execution_id=task.execution_id,
        queue=task.event.options.queue,
        activity=task.event.name,
        attempt=task.attempt,
    )


def log_blocked(execution: Execution, failure: Failure, node: str) -> None:
    """An execution takes no more turns, until its code was fixed and somebody retries it."""
    extra = tag_execution(LogEvent.EXECUTION_BLOCKED, execution, node=node, trace=failure.trace or None)
    remedy = "See" if failure.message.endswith(_RETRY) else "Correct the code, then retry it; see"
    args = (_name(execution), _describe(failure).rstrip("."), remedy, _indent(failure.trace))
    _write(_engine_log, logging.ERROR, "%s is blocked by %s. %s `holdfast show`.%s", args, extra)


def log_failed(execution: Execution, failure: Failure, node: str) -> None:
    """A workflow raised an exception: its execution is closed as failed."""
    extra = tag_execution(LogEvent.EXECUTION_FAILED, execution, node=node, trace=failure.trace or None)
    args = (_name(execution), _describe(failure), _indent(failure.trace))
    _write(_engine_log, logging.ERROR, "%s failed with %s%s", args, extra)


def log_activities(execution: Execution, turn: Turn, node: str) -> None:
    """What a turn met of its activities: failures, and new attempts in place of lost ones."""
    for trouble in turn.troubles:
        match trouble:
            case ActivityEnded():
                _log_activity_ended(execution, trouble, node)
            case AttemptFailed():
                _log_attempt_failed(execution, trouble, node)
            case AttemptTakenOver():
                _log_taken_over(execution, trouble, node)
            case LetterDiscarded():
                pass  # see log_letters


def log_letters(execution: Execution, turn: Turn, node: str) -> None:
    """What a turn could not handle: dead letters, and those that are discarded."""
    for trouble in turn.troubles:
        if type(trouble) is LetterDiscarded:
            extra = tag_execution(LogEvent.DEAD_LETTER_DISCARDED, execution, node=node)
            _write(_engine_log, logging.WARNING, _DISCARDED, (_name(execution), hide_values(trouble.reason)), extra)
    for letter in turn.dead_letters:
        if letter.is_rejected and type(letter.envelope) is Signal:
            extra = tag_execution(LogEvent.SIGNAL_REJECTED, execution, node=node)
            _write(_engine_log, logging.WARNING, _REJECTED, (letter.envelope.name, _name(execution)), extra)
        else:
            extra = tag_execution(LogEvent.DEAD_LETTER, execution, node=node)
            _write(_engine_log, logging.ERROR, _DEAD, (_name(execution), hide_values(letter.reason)), extra)


def log_dead_letter(row: DeadLetterRow, node: str) -> None:
    """An envelope that no execution took is a dead letter now."""
    _write(
        _engine_log,
        logging.ERROR,
        _DEAD,
        (_name_receiver(row), hide_values(row.reason)),
        _tag_row(LogEvent.DEAD_LETTER, row, node),
    )


def log_discarded(row: DeadLetterRow, node: str) -> None:
    """An envelope that no execution took is gone, as the engine's `dead_letter_policy` says."""
    extra = _tag_row(LogEvent.DEAD_LETTER_DISCARDED, row, node)
    _write(_engine_log, logging.WARNING, _DISCARDED, (_name_receiver(row), hide_values(row.reason)), extra)


_RETRY: Final = "then retry the execution."
"""How messages end that say what to do about a blocked execution."""
_DEAD: Final = "what was sent to %s cannot be handled, and is a dead letter: %s See `holdfast dead-letters`."
_REJECTED: Final = (
    "a signal '%s' for %s has a value that does not fit what the workflow waits for, and is a dead letter: "
    "`holdfast dead-letters` shows it"
)
_DISCARDED: Final = "an envelope for %s could not be handled, and dead_letter_policy discards it: %s"


def _log_activity_ended(execution: Execution, trouble: ActivityEnded, node: str) -> None:
    about, failure = trouble.about, trouble.failure
    extra = _tag_activity(LogEvent.ACTIVITY_FAILED, execution, about, node, failure.trace)
    if trouble.is_lost:  # reported by an attempt that was not run: its number would tell of one call too many
        lost = "activity '%s' of %s is lost: it may run at most once, had begun, and %s (%s)"
        told = (about.name, _name(execution), hide_values(failure.message), failure.type)
        _write(_activity_log, logging.WARNING, lost, told, extra)
        return
    args = (about.name, _name(execution), about.attempt, _describe(failure), _indent(failure.trace))
    _write(_activity_log, logging.WARNING, "activity '%s' of %s failed for good, in attempt %d, with %s%s", args, extra)


def _log_attempt_failed(execution: Execution, trouble: AttemptFailed, node: str) -> None:
    about, failure = trouble.about, trouble.failure
    event, level = LogEvent.ACTIVITY_ATTEMPT_FAILED, logging.INFO
    if trouble.lasts_long:
        event, level = LogEvent.ACTIVITY_RETRYING, logging.WARNING
    elif trouble.failures == 1:
        level = logging.WARNING
    if not _activity_log.isEnabledFor(level):
        return
    args = (
        about.name,
        _name(execution),
        about.attempt,
        _describe(failure),
        "it has been retrying for long: " if trouble.lasts_long else "",
        count_noun(trouble.failures, "failure"),
        trouble.open_for / SECOND,
        trouble.pause / SECOND,
        _indent(failure.trace),
    )
    text = "activity '%s' of %s failed in attempt %d with %s; %s%s in %.0f s, the next try is in %.1f s%s"
    _write(_activity_log, level, text, args, _tag_activity(event, execution, about, node, failure.trace))


def _log_taken_over(execution: Execution, trouble: AttemptTakenOver, node: str) -> None:
    about = trouble.about
    extra = _tag_activity(LogEvent.ACTIVITY_TAKEN_OVER, execution, about, node, "")
    if trouble.former == node:
        how = "was given back by this node, or lost with an earlier process of it"
    else:
        how = f"ran on node {trouble.former}, which has {'left' if trouble.has_left else 'ended'}"
    args = (about.attempt, about.name, _name(execution), how)
    _write(_activity_log, logging.WARNING, "attempt %d of activity '%s' of %s %s: a new attempt begins", args, extra)


# --- parts ---


def _write(log: logging.Logger, level: int, text: str, args: tuple[Any, ...], extra: dict[str, Any]) -> None:
    try:
        log.log(level, text, *args, extra=extra, stacklevel=2)
    except Exception:  # noqa: BLE001 - of a filter or handler of the user's; reported as logging itself does
        if logging.raiseExceptions:
            traceback.print_exc()


def _tag_activity(event: LogEvent, execution: Execution, about: ActivityAbout, node: str, trace: str) -> dict[str, Any]:
    extra = tag_execution(event, execution, node=node, trace=trace or None)
    extra["queue"], extra["activity"], extra["attempt"] = about.queue, about.name, about.attempt
    return extra


def _tag_row(event: LogEvent, row: DeadLetterRow, node: str) -> dict[str, Any]:
    fields = {"workflow_id": row.workflow_id or None, "execution_id": row.execution_id or None}
    return tag(event, org=row.org, node=node, **fields)


def _name(execution: Execution) -> str:
    both = "" if execution.workflow_id == execution.execution_id else f" ({execution.execution_id})"
    return f"execution '{execution.workflow_id}'{both} of workflow '{execution.workflow}'"


def _name_receiver(row: DeadLetterRow) -> str:
    return f"'{row.execution_id or row.workflow_id}'"


def _describe(failure: Failure) -> str:
    return "; the first is ".join(
        f"{one.type}: {hide_values(one.message)}" if one.message else one.type for one in list_told(failure)
    )


def _indent(trace: str) -> str:
    """A stored trace below the message, innermost frame last."""
    return "".join(f"\n  {line}" for line in trace.splitlines())
