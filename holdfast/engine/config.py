"""The engine's options, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.errors import InvalidConfiguration, InvalidDuration


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Every number that can be set. All of them are positive."""

    payload_limit: int = DEFAULT_LIMIT
    """The most bytes of JSON one value may have."""
    max_signals: int = 10_000
    """The most signals one run may receive."""
    max_live_programs: int = 2_000
    """How many suspended programs stay in memory; others are replayed when something arrives for them."""
    max_live_bytes: int = 256 * 1024 * 1024
    """How much history those programs may stand for."""
    replay_ahead: int = 200
    """From how many events on a history is replayed before its execution is locked, and not under the lock."""
    max_activities: int = 1_000
    """How many async activities run at once on this node."""
    max_threads: int = 32
    """How many sync activities run at once in threads."""
    max_processes: int = 2
    """How many activities run at once in processes."""
    batch_size: int = 512
    """How many executions one transaction takes at most."""
    max_attempts: int = 5
    """How often handling an envelope may fail before it goes to the dead letters."""
    max_lost: int = 5
    """How often in a row a process may end with an activity before that fails, or with a turn before that is given up."""
    shutdown_grace: float = 10.0
    """Seconds that running activities get to finish when the engine shuts down."""
    slow_turn: float = 1.0
    """Seconds after which a turn that does not come to rest is reported."""
    heartbeat: float = 2.0
    """Seconds between heartbeats on a shared store."""
    lease: float = 6.0
    """Seconds after which a node without a heartbeat counts as gone; at least two heartbeats."""
    request_ttl: float = 24 * 3600.0
    """Seconds for which a request id, or an idempotency key without a time of its own, is remembered."""
    retention: float | None = None
    """Seconds, or a timedelta, after which closed executions are removed with their histories; None: never."""


def make_config(options: dict[str, Any]) -> Config:
    """The configuration with some options set. Raises InvalidConfiguration that names the option."""
    known = {field.name: field.default for field in msgspec.structs.fields(Config)}
    for name, value in options.items():
        if name not in known:
            raise InvalidConfiguration(
                f"Expected an option of the engine, but '{name}' is none. The options are: {', '.join(sorted(known))}."
            )
        if name != "retention":
            _check_number(name, value, type(known[name]))
    config = Config(**options | {"retention": check_retention(options.get("retention"))})
    if config.lease < 2 * config.heartbeat:
        raise InvalidConfiguration(
            f"Expected lease=… to be at least twice heartbeat=…, but they are {config.lease:g} and {config.heartbeat:g} s: "
            "one heartbeat that comes late would cost the lease. Raise the lease, or send heartbeats more often."
        )
    return config


def _check_number(name: str, value: object, wanted: type) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) if wanted is float else type(value) is int
    if not fits or not 0 < value < float("inf"):  # type: ignore[operator]  # it is a number
        kind = "number" if wanted is float else "whole number"
        raise InvalidConfiguration(f"Expected {name}=… to be a positive {kind}, but it is {value!r}. Correct the option.")


def check_retention(value: Duration | None) -> float | None:
    """For how many seconds closed executions are kept. Raises InvalidConfiguration."""
    if value is None:
        return None
    try:
        micros = to_micros(value)
    except InvalidDuration:
        micros = 0
    if not micros:
        raise InvalidConfiguration(
            "Expected retention=… to be a timedelta or a positive number of seconds, at most a hundred years, or None, "
            f"but it is {value!r}. Write for instance timedelta(days=30)."
        )
    return micros / SECOND


def check_queue_limits(limits: Mapping[str, int] | None) -> Mapping[str, int]:
    """How many activities of a queue run at once. Raises InvalidConfiguration or InvalidIdentifier."""
    if limits is None:
        return {}
    if not isinstance(limits, Mapping) or not all(type(most) is int and most > 0 for most in limits.values()):
        raise InvalidConfiguration(
            f"Expected queue_limits=… to map queues to positive whole numbers, but it is {limits!r}. Write {{'slow': 2}}."
        )
    for queue in limits:
        check_identifier(queue, "the queue in queue_limits=…")
    return limits


def check_node(node: str) -> str:
    """The name of a node. Raises InvalidConfiguration or InvalidIdentifier."""
    if "," in check_identifier(node, "the name of the node"):
        raise InvalidConfiguration(f"Expected the name of the node to have no comma, but it is {node!r}. Choose another.")
    return node
