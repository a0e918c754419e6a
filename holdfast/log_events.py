"""The codes of what Holdfast logs at WARNING or above, and the fields that each such record carries.

`LogEvent` lists every code; docs/observability.md describes each of them, and a test compares the two. A record carries its
code as `event`, and all of `FIELDS` as attributes: None where one does not apply, so that a format string may name any of
them. Values of users (arguments, results, signals) are never among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol


class LogEvent(StrEnum):
    """A stable code for one kind of record. It is never renamed; what is no longer logged is removed."""

    # --- executions and their activities: logged once they are committed, by the node that committed them ---
    EXECUTION_BLOCKED = "execution_blocked"
    EXECUTION_FAILED = "execution_failed"
    ACTIVITY_FAILED = "activity_failed"
    ACTIVITY_ATTEMPT_FAILED = "activity_attempt_failed"
    ACTIVITY_RETRYING = "activity_retrying"
    ACTIVITY_TAKEN_OVER = "activity_taken_over"
    SIGNAL_REJECTED = "signal_rejected"
    DEAD_LETTER = "dead_letter"
    DEAD_LETTER_DISCARDED = "dead_letter_discarded"
    WAITS_FOREVER = "waits_forever"
    LONG_HISTORY = "long_history"

    # --- work that no living node takes: logged once, by the node that looks for all ---
    ACTIVITY_NOT_OFFERED = "activity_not_offered"
    WORKFLOW_NOT_OFFERED = "workflow_not_offered"

    # --- activities as they run ---
    ACTIVITY_STILL_RUNS = "activity_still_runs"
    ACTIVITY_LEFT_BEHIND = "activity_left_behind"
    ACTIVITY_BEGUN_ANEW = "activity_begun_anew"
    TRANSACTION_REPEATED = "transaction_repeated"
    OFFERS_NOT_TAKEN = "offers_not_taken"
    OFFER_NOT_READ = "offer_not_read"

    # --- calls of other processes ---
    CLIENTS_NOT_SERVED = "clients_not_served"
    SOCKET_REPLACED = "socket_replaced"
    CLIENT_CUT_OFF = "client_cut_off"
    CLIENT_CALL_FAILED = "client_call_failed"
    WORKFLOW_NOT_ANNOUNCED = "workflow_not_announced"
    PAUSE_UNKNOWN = "pause_unknown"

    # --- who waits for a result ---
    RESULT_WAITS_FOR_BLOCKED = "result_waits_for_blocked"
    RESULT_WAITS_FOR_CODE = "result_waits_for_code"
    RESULT_NOT_READ = "result_not_read"

    # --- turns and batches ---
    TURN_FAILED = "turn_failed"
    TURN_NOT_COMMITTED = "turn_not_committed"
    TURN_NOT_NOTED = "turn_not_noted"
    TURN_NOT_POSSIBLE = "turn_not_possible"
    FIRST_TURN_PUT_OFF = "first_turn_put_off"
    BATCH_FAILED = "batch_failed"
    BATCH_SPLIT = "batch_split"
    BATCH_SLOW = "batch_slow"
    PUBLISHING_FAILED = "publishing_failed"
    LEFT_TO_NEWER = "left_to_newer"
    REPLAY_AHEAD_FAILED = "replay_ahead_failed"
    SNAPSHOT_FAILED = "snapshot_failed"
    LINKED_NOT_LOADED = "linked_not_loaded"
    NAME_OF_PROCESS = "name_of_process"
    LOOP_BLOCKED = "loop_blocked"
    LOOP_FREE_AGAIN = "loop_free_again"
    TASK_ENDED = "task_ended"
    TASK_NOT_AWAITED = "task_not_awaited"
    CALL_NOT_AWAITED = "call_not_awaited"
    PROCESS_ENDED = "process_ended"

    # --- nodes ---
    NODE_TAKEN_OVER = "node_taken_over"
    NODE_NOT_TAKEN_OVER = "node_not_taken_over"
    NODE_REPLACED = "node_replaced"
    NODE_NAME_TAKEN = "node_name_taken"
    NODE_NOT_ANNOUNCED = "node_not_announced"
    NODE_NOT_LEFT = "node_not_left"
    HEARTBEAT_LATE = "heartbeat_late"
    LEASE_NOT_RENEWED = "lease_not_renewed"
    LEASE_RENEWED_AGAIN = "lease_renewed_again"
    HEARTBEAT_THREAD_FAILED = "heartbeat_thread_failed"
    DATABASE_WENT_BACK = "database_went_back"
    RETENTION_FAILED = "retention_failed"
    STALE_FOUND = "stale_found"
    STALE_ENDED = "stale_ended"
    SCHEDULES_FAILED = "schedules_failed"
    BLOCKED_NOT_READ = "blocked_not_read"
    STOP_SIGNAL = "stop_signal"
    ENGINE_NOT_CLOSED = "engine_not_closed"

    # --- stores ---
    COMMITS_NOT_DURABLE = "commits_not_durable"
    WAKE_UPS_LOST = "wake_ups_lost"
    NO_WAKE_UPS = "no_wake_ups"
    CHECKPOINT_FAILED = "checkpoint_failed"

    # --- tests ---
    TIME_STANDS_STILL = "time_stands_still"
    RESULT_WAITS_FOR_TEST = "result_waits_for_test"


FIELDS: Final = ("org", "workflow", "workflow_id", "execution_id", "queue", "activity", "attempt", "node", "trace")
"""The attributes of a record beside its `event`. None of them is an attribute that `logging` itself gives to records."""

_NONE: Final[Mapping[str, Any]] = dict.fromkeys(FIELDS)


def tag(event: LogEvent, **fields: Any) -> dict[str, Any]:
    """The `extra` of a record: its code, and what of `FIELDS` is known; all else is None."""
    return {**_NONE, "event": event.value, **fields}


class Identified(Protocol):
    """An execution, or a row of one."""

    @property
    def org(self) -> str:
        """The organisation that the execution belongs to."""
        ...

    @property
    def workflow(self) -> str:
        """The name of the workflow that it runs."""
        ...

    @property
    def workflow_id(self) -> str:
        """The workflow id, which its caller chose."""
        ...

    @property
    def execution_id(self) -> str:
        """The execution id, of this one run."""
        ...

    @property
    def queue(self) -> str:
        """The queue from which its turns are taken."""
        ...


def tag_execution(event: LogEvent, execution: Identified, **fields: Any) -> dict[str, Any]:
    """The `extra` of a record about one execution."""
    return {
        **_NONE,
        "event": event.value,
        "org": execution.org,
        "workflow": execution.workflow,
        "workflow_id": execution.workflow_id,
        "execution_id": execution.execution_id,
        "queue": execution.queue,
        **fields,
    }
