"""The engine's options, checked when it is made."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, TypedDict

import msgspec

from holdfast.core.effects import Limits
from holdfast.core.ids import check_identifier
from holdfast.core.instants import LONGEST, SECOND, Duration, Micros, to_micros
from holdfast.core.org_limits import OrgLimits
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.core.retry import RetryPolicy
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.searchable_values import is_storable_name
from holdfast.errors import InvalidConfiguration, InvalidDuration

LONGEST_RESOLUTION: Final = 3600 * SECOND
SHORTEST_RETRY: Final = SECOND // 1_000
MOST: Final = 1_000_000_000
"""The most of whatever is counted: more does not fit where the operating system counts it."""
MOST_STORED_BYTES: Final = 512 * 1024 * 1024
"""The most bytes of one value or turn: SQLite and PostgreSQL take less than a gigabyte at once."""
MOST_LIVE_BYTES: Final = 1024 * 1024 * 1024 * 1024


class EngineOptions(TypedDict, total=False):
    """The options of an engine beside its store and its code: `Engine(url, workflows=[…], heartbeat=1.0)`."""

    payload_limit: int
    """The most bytes of JSON that one value may have: all arguments of a call, a result, a signal. Default 2 MiB."""
    max_signals: int
    """The most signals that one run may receive; more are refused. Default 10,000."""
    max_live_programs: int
    """How many suspended programs stay in memory; others are replayed when something arrives for them. Default 2,000."""
    max_live_bytes: int
    """How many bytes of history the programs in memory may stand for. Default 256 MiB."""
    replay_ahead: int
    """From how many events on a history is replayed before its execution is locked, not under the lock. Default 200."""
    max_activities: int
    """How many async activities run at once on this node. Default 1,000."""
    max_threads: int
    """How many sync activities run at once in threads of this node. Default 32."""
    max_processes: int
    """How many activities run at once in processes of this node. Default 2."""
    batch_size: int
    """How many executions take their turns in one transaction at most. Default 512."""
    max_attempts: int
    """How often handling an envelope may fail before it goes to the dead letters. Default 5."""
    max_lost: int
    """How often in a row a process may end with an activity before that fails, or with a turn, or a turn may fail to be
    committed, before its execution is blocked. Default 5."""
    turn_limit: float
    """Seconds that a turn may compute before it is interrupted, from 0.1 to 5. Default 2."""
    max_turn_bytes: int
    """The most bytes of history that one turn may write. Default 64 MiB."""
    history_warning_events: int
    """From how many events on a history is warned of in the log, and again each time that it has doubled. Default 10,000."""
    history_warning_bytes: int
    """From how many bytes on a history is warned of in the log, and again each time that it has doubled. Default 20 MiB."""
    slow_turn: float
    """Seconds after which a batch that is still under way is reported in the log, with where its thread is. Default 1."""
    shutdown_grace: float
    """Seconds that running activities get to finish when the engine shuts down. Default 10."""
    heartbeat: float
    """Seconds between the heartbeats of a node on a shared store. Default 2."""
    lease: float
    """Seconds after which a node without a heartbeat counts as gone; at least two heartbeats. Default 6."""
    storage_retry: RetryPolicy
    """How soon work is tried again that the store did not take, after an outage for instance: a `Retry(…)`.

    Batches are tried without end. A call of which it is certain that nothing was committed is tried `max_attempts` times,
    then raises StoreUnavailable. Default `Retry(max_attempts=1, initial=0.05, factor=2, maximum=5)`.
    """
    timer_resolution: Duration | None
    """Due times of timers are rounded up to a multiple of this, at most an hour, so that many timers share one batch: they
    fire later by up to that much. Seconds or a timedelta. Default None: to the microsecond."""
    request_ttl: float
    """Seconds for which a request id, or an idempotency key without a time of its own, is remembered. Default a day."""
    dead_letter_policy: Literal["keep", "discard"]
    """What becomes of an envelope that cannot be handled: 'keep' it among the dead letters, or 'discard' it with a line in
    the log. Default 'keep'."""
    retention: Duration | None
    """Seconds, or a timedelta, after which closed executions are removed with their histories. Default None: never."""
    propagate_child_failures: bool
    """Whether awaiting a child that ends without a result raises ChildWorkflowFailed, where the call does not say it; if
    not, the exception is given as a value. Recorded with each child. Default True."""
    searchable_state: Collection[str] | None
    """The keys of states by which lists can search; others are shown alone. Their values are stored as plain text beside the
    state, also where a codec encodes that. Default None: all keys; with a codec none."""
    dead_letter_retention: Duration | None
    """Seconds, or a timedelta, after which dead letters of all orgs are removed. Default None: never, they are kept until
    somebody requeues or discards them."""
    stale_after: Duration | None
    """Seconds, or a timedelta, after which open executions are terminated, and human tasks cancelled, that nobody touched
    meanwhile and that wait for nothing that comes by itself: see docs/operations.md. Default None: never."""
    stale_action: Literal["terminate", "report"]
    """What becomes of stale executions and tasks: 'terminate' ends them, 'report' only tells of them in the log. Without
    `stale_after` it has no effect. Default 'terminate'."""
    org_limits: OrgLimits | None
    """How many open executions, subscriptions and kept items each org may have: an `OrgLimits(…)`. What would be one too
    many is refused with LimitReached. Default None: no limits."""
    org_limit_overrides: Mapping[str, OrgLimits] | None
    """Limits of single orgs, by name: each replaces all of `org_limits`. Default None: there are none."""
    max_pending_events: int
    """How many events, or messages, of one name and org may be kept at once; more are refused. Default 10,000."""
    event_retention: Duration
    """Seconds, or a timedelta, for which events are kept whose type has no `expire_after`. Default 7 days."""
    message_ttl: Duration | None
    """Seconds, or a timedelta, for which messages are kept that nobody waits for, where a call names no ttl. Default None:
    they are refused."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one engine after they were checked. What each of them means says `EngineOptions`."""

    payload_limit: int = DEFAULT_LIMIT
    max_signals: int = 10_000
    max_live_programs: int = 2_000
    max_live_bytes: int = 256 * 1024 * 1024
    replay_ahead: int = 200
    max_activities: int = 1_000
    max_threads: int = 32
    max_processes: int = 2
    batch_size: int = 512
    max_attempts: int = 5
    max_lost: int = 5
    turn_limit: float = 2.0
    max_turn_bytes: int = 64 * 1024 * 1024
    history_warning_events: int = 10_000
    history_warning_bytes: int = 20 * 1024 * 1024
    slow_turn: float = 1.0
    shutdown_grace: float = 10.0
    heartbeat: float = 2.0
    lease: float = 6.0
    storage_retry: RetryPolicy = RetryPolicy(max_attempts=1, initial_us=SECOND // 20, factor=2.0, maximum_us=5 * SECOND)
    timer_resolution: float | None = None
    """In seconds."""
    request_ttl: float = 24 * 3600.0
    dead_letter_policy: Literal["keep", "discard"] = "keep"
    retention: float | None = None
    """In seconds."""
    dead_letter_retention: float | None = None
    """In seconds."""
    stale_after: float | None = None
    """In seconds."""
    stale_action: Literal["terminate", "report"] = "terminate"
    propagate_child_failures: bool = True
    searchable_state: frozenset[str] | None = None
    org_limits: OrgLimits | None = None
    org_limit_overrides: Mapping[str, OrgLimits] | None = None

    max_pending_events: int = 10_000
    event_retention: float = 7 * 24 * 3600.0
    """In seconds."""
    message_ttl: float | None = None
    """In seconds."""

    def limits_of(self, org: str) -> OrgLimits | None:
        """How much an org may have; None if there is no limit."""
        return self.org_limit_overrides.get(org, self.org_limits) if self.org_limit_overrides else self.org_limits

    @property
    def limits(self) -> Limits:
        """The bounds that each turn enforces."""
        resolution = 0 if self.timer_resolution is None else round(self.timer_resolution * SECOND)
        return Limits(
            max_signals=self.max_signals,
            searchable_state=self.searchable_state,
            timer_resolution=resolution,
            event_retention=round(self.event_retention * SECOND),
            message_ttl=0 if self.message_ttl is None else round(self.message_ttl * SECOND),
        )


_PARAMETERS: Final = ("activities", "clock", "codec", "entropy", "events", "node", "queue_limits", "queues", "workflows")
"""The other keywords of an engine, which are no options of its configuration."""


def make_config(options: EngineOptions) -> Config:
    """The configuration with some options set. Raises InvalidConfiguration that names the option."""
    known = {field.name: field.default for field in msgspec.structs.fields(Config)}
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            listed = sorted({*known, *_PARAMETERS})
            near = difflib.get_close_matches(name, listed, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise InvalidConfiguration(
                f"Expected an option of the engine, but '{name}' is none.{hint} The options are: {', '.join(listed)}."
            )
        check = _CHECKS.get(name)
        if check is not None:
            checked[name] = check(value)
        else:
            checked[name] = (_check_seconds if isinstance(known[name], float) else _check_count)(name, value)
    config = Config(**checked)
    if config.lease < 2 * config.heartbeat:
        raise InvalidConfiguration(
            f"Expected lease=… to be at least twice heartbeat=…, but they are {config.lease:g} and {config.heartbeat:g} s: "
            "one heartbeat that comes late would cost the lease. Raise the lease, or send heartbeats more often."
        )
    return config


def _check_seconds(name: str, value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 / SECOND <= value <= LONGEST / SECOND:  # type: ignore[operator]  # it is a number
        raise InvalidConfiguration(
            f"Expected {name}=… to be a number of seconds from a microsecond to a hundred years, but it is {_show(value)}. "
            "Correct the option."
        )
    return value


def _check_count(name: str, value: object) -> object:
    most = _MOST_BYTES.get(name, MOST)
    if type(value) is not int or not 0 < value <= most:
        raise InvalidConfiguration(
            f"Expected {name}=… to be a whole number from 1 to {most:,}, but it is {_show(value)}. Correct the option."
        )
    return value


def _show(value: object) -> str:
    return show(value, repr, LONGEST_SHOWN)


def _check_turn_limit(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value <= 5:
        raise InvalidConfiguration(
            f"Expected turn_limit=… to be a number of seconds from 0.1 to 5, but it is {_show(value)}. "
            "Let a turn that computes for longer call an activity instead."
        )
    return value


def _check_storage_retry(value: object) -> object:
    if not isinstance(value, RetryPolicy):
        raise InvalidConfiguration(
            f"Expected storage_retry=… to be a Retry(...), but it is {_show(value)}. Write for instance Retry(initial=0.1)."
        )
    if value.initial_us < SHORTEST_RETRY or value.maximum_us < value.initial_us:
        raise InvalidConfiguration(
            "Expected storage_retry=… to wait for at least a millisecond, and never less than at first, but it waits for "
            f"{value.initial_us / SECOND:g} s at first and {value.maximum_us / SECOND:g} s at most. Correct the policy."
        )
    if value.non_retryable or value.only:
        field, names = ("only", value.only) if value.only else ("non_retryable", value.non_retryable)
        raise InvalidConfiguration(
            f"Expected storage_retry=… to name no exceptions, but it has {field}="
            f"{names!r}. Leave them out: only what the store certainly did not take is tried again."
        )
    return value


def _check_dead_letter_policy(value: object) -> object:
    if value not in ("keep", "discard"):
        raise InvalidConfiguration(
            f"Expected dead_letter_policy=… to be 'keep' or 'discard', but it is {_show(value)}. Correct the option."
        )
    return value


def _check_propagate_child_failures(value: object) -> object:
    if not isinstance(value, bool):
        raise InvalidConfiguration(
            f"Expected propagate_child_failures=… to be True or False, but it is {_show(value)}. Correct the option."
        )
    return value


def _check_timer_resolution(value: Any) -> float | None:
    return _check_length("timer_resolution", value, LONGEST_RESOLUTION, "an hour", "0.1")


def check_retention(value: Duration | None) -> float | None:
    """For how many seconds closed executions are kept. Raises InvalidConfiguration."""
    return _check_length("retention", value, LONGEST, "a hundred years", "timedelta(days=30)")


def _check_dead_letter_retention(value: Any) -> float | None:
    return _check_length("dead_letter_retention", value, LONGEST, "a hundred years", "timedelta(days=30)")


def _check_stale_after(value: Any) -> float | None:
    return _check_length("stale_after", value, LONGEST, "a hundred years", "timedelta(days=90)")


def _check_stale_action(value: object) -> object:
    if value not in ("terminate", "report"):
        raise InvalidConfiguration(
            f"Expected stale_action=… to be 'terminate' or 'report', but it is {_show(value)}. Correct the option."
        )
    return value


def _check_event_retention(value: Any) -> float:
    checked = _check_length("event_retention", value, LONGEST, "a hundred years", "timedelta(days=7)")
    if checked is None:
        raise InvalidConfiguration(
            "Expected event_retention=… to be a timedelta or a positive number of seconds, but it is None. Leave it out: "
            "then events are kept for 7 days."
        )
    return checked


def _check_message_ttl(value: Any) -> float | None:
    return _check_length("message_ttl", value, LONGEST, "a hundred years", "timedelta(hours=1)")


def _check_length(name: str, value: Duration | None, most: Micros, most_text: str, example: str) -> float | None:
    """A length of time in seconds, positive and at most so long; or None."""
    if value is None:
        return None
    try:
        micros = to_micros(value)
    except (InvalidDuration, ValueError):  # the latter for a whole number with too many digits to be shown
        micros = 0
    if not 0 < micros <= most:
        raise InvalidConfiguration(
            f"Expected {name}=… to be a timedelta or a positive number of seconds, at most {most_text}, or None, "
            f"but it is {_show(value)}. Write for instance {example}."
        )
    return micros / SECOND


def _check_searchable_state(value: object) -> object:
    names = [] if isinstance(value, str | bytes) or not isinstance(value, Collection) else list(value)
    if value is None or (not isinstance(value, str | bytes) and isinstance(value, Collection) and all(map(_is_name, names))):
        return None if value is None else frozenset(names)
    raise InvalidConfiguration(
        f"Expected searchable_state=… to be a list of keys of states, each of 1 to 255 bytes, but it is {_show(value)}. "
        "Write for instance ['step', 'amount']."
    )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and is_storable_name(name)


def _check_org_limits(value: object, name: str = "org_limits=…") -> object:
    if value is None:
        return None
    if not isinstance(value, OrgLimits):
        raise InvalidConfiguration(
            f"Expected {name} to be OrgLimits(…), but it is {_show(value)}. "
            "Write for instance OrgLimits(open_executions=1000)."
        )
    for field in OrgLimits.__struct_fields__:
        most = getattr(value, field)
        if most is not None and (type(most) is not int or not 0 < most <= MOST):
            raise InvalidConfiguration(
                f"Expected {name} to have whole numbers from 1 to {MOST:,}, or None, but {field} is {_show(most)}. "
                "Correct the option."
            )
    return value


def _check_org_limit_overrides(value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidConfiguration(
            f"Expected org_limit_overrides=… to map orgs to OrgLimits(…), but it is {_show(value)}. "
            "Write for instance {'acme': OrgLimits(open_executions=1000)}."
        )
    for org, limits in value.items():
        check_identifier(org, "the org in org_limit_overrides=…")
        if limits is None:
            raise InvalidConfiguration(
                f"Expected org_limit_overrides=… to map orgs to OrgLimits(…), but that of '{org}' is None. "
                "Write OrgLimits() for an org without limits."
            )
        _check_org_limits(limits, f"org_limit_overrides=… of '{org}'")
    return dict(value)


_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "turn_limit": _check_turn_limit,
    "storage_retry": _check_storage_retry,
    "timer_resolution": _check_timer_resolution,
    "dead_letter_policy": _check_dead_letter_policy,
    "retention": check_retention,
    "dead_letter_retention": _check_dead_letter_retention,
    "stale_after": _check_stale_after,
    "stale_action": _check_stale_action,
    "propagate_child_failures": _check_propagate_child_failures,
    "searchable_state": _check_searchable_state,
    "org_limits": _check_org_limits,
    "org_limit_overrides": _check_org_limit_overrides,
    "event_retention": _check_event_retention,
    "message_ttl": _check_message_ttl,
}
"""How options are checked that are neither counts nor plain numbers of seconds."""
_MOST_BYTES: Final[Mapping[str, int]] = {
    "payload_limit": MOST_STORED_BYTES,
    "max_turn_bytes": MOST_STORED_BYTES,
    "max_live_bytes": MOST_LIVE_BYTES,
    "history_warning_bytes": MOST_LIVE_BYTES,
}


def check_queue_limits(limits: Mapping[str, int] | None) -> Mapping[str, int]:
    """How many activities of a queue run at once. Raises InvalidConfiguration or InvalidIdentifier."""
    if limits is None:
        return {}
    if not isinstance(limits, Mapping) or not all(type(most) is int and 0 < most <= MOST for most in limits.values()):
        raise InvalidConfiguration(
            f"Expected queue_limits=… to map queues to whole numbers from 1 to {MOST:,}, but it is {_show(limits)}. "
            "Write {'slow': 2}."
        )
    for queue in limits:
        check_identifier(queue, "the queue in queue_limits=…")
    return limits


def check_node(node: str) -> str:
    """The name of a node. Raises InvalidIdentifier."""
    return check_identifier(node, "the name of the node")


def check_clock(clock: object) -> None:
    """Raises InvalidConfiguration if it can be no engine's source of time; None stands for the default."""
    is_clock = not isinstance(clock, type) and all(callable(getattr(clock, name, None)) for name in ("now", "call_at"))
    if clock is not None and not is_clock:
        raise InvalidConfiguration(
            "Expected clock=… to be an object with now() and call_at(when, callback), "
            f"but it is {_show(clock)}. Leave it out: tests with a time of their own use holdfast.testing.TestEngine."
        )


def check_entropy(entropy: object) -> None:
    """Raises InvalidConfiguration if it can be no source of random bits."""
    if not callable(entropy):
        raise InvalidConfiguration(
            "Expected entropy=… to be a function that gives as many random bits as asked for, "
            f"but it is {_show(entropy)}. Leave it out, or write for instance random.Random(7).getrandbits."
        )
