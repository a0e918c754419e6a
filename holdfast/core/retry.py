"""Retry arithmetic: whether to try again, and after how long."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec

from holdfast.core.ids import derive_entropy
from holdfast.core.instants import Duration, Micros, to_micros
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.errors import InvalidConfiguration


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """A retry policy as history records it: whole microseconds, names of types."""

    max_attempts: int | None = None
    initial_us: Micros = 1_000_000
    factor: float = 2.0
    maximum_us: Micros = 60_000_000
    jitter: float = 0.1
    non_retryable: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """If there are any, the only types of failures that are retried."""


DEFAULT_RETRY = RetryPolicy()


def Retry(  # noqa: N802 - reads as a value where users write it: @activity(retry=Retry(max_attempts=5))
    *,
    max_attempts: int | None = None,
    initial: Duration = timedelta(seconds=1),
    factor: float = 2.0,
    maximum: Duration = timedelta(minutes=1),
    jitter: float = 0.1,
    non_retryable: Iterable[str | type[BaseException]] = (),
    only: Iterable[str | type[BaseException]] | None = None,
) -> RetryPolicy:
    """How often and how soon an activity is tried again after a failure.

    The wait before attempt n+1 is `initial * factor ** (n - 1)`, at most `maximum`, spread by ±`jitter` (a share).
    `max_attempts=None` tries without end; `non_retryable` names exception types that end the attempts at once. With `only`,
    every other type does; subclasses of a type that it names are retried too. A timeout of an attempt is the type
    "ActivityTimedOut". An activity that raises `RetryAfter` chooses the next wait itself, whatever the types.
    """
    if max_attempts is not None and (type(max_attempts) is not int or max_attempts < 1):
        raise _refused("max_attempts", "a whole number of at least 1, or None for no limit", max_attempts)
    if not isinstance(factor, int | float) or not 1.0 <= factor <= 1e6:
        raise _refused("factor", "a number from 1 to 1,000,000", factor)
    if not isinstance(jitter, int | float) or not 0.0 <= jitter <= 1.0:
        raise _refused("jitter", "a share from 0 to 1", jitter)
    return RetryPolicy(
        max_attempts=max_attempts,
        initial_us=to_micros(initial, "Retry(initial=…)"),
        factor=float(factor),
        maximum_us=to_micros(maximum, "Retry(maximum=…)"),
        jitter=float(jitter),
        non_retryable=_read_types("non_retryable", non_retryable),
        only=() if only is None else _read_types("only", only, at_least=1),
    )


def _read_types(field: str, given: Any, at_least: int = 0) -> tuple[str, ...]:
    """The names of exception types that are given as types or by name."""
    wanted = "a list of exception types or their names" + (", with at least one" if at_least else "")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _refused(field, wanted, given)
    items = tuple(given)
    for item in items:
        if not (isinstance(item, str) and item) and not (isinstance(item, type) and issubclass(item, BaseException)):
            raise _refused(field, wanted, given)
    if len(items) < at_least:
        raise _refused(field, wanted, given)
    return tuple(item if isinstance(item, str) else item.__name__ for item in items)


def may_retry(
    policy: RetryPolicy,
    failures: int,
    failure_type: str,
    *,
    non_retryable: bool,
    kinds: tuple[str, ...] = (),
    is_asked_for: bool = False,
) -> bool:
    """Whether another attempt is allowed after `failures` failed ones, the last of `failure_type`.

    `kinds` are its base types, for `only`; a retry that the activity itself asks for is not a matter of types.
    """
    if not is_asked_for:
        if non_retryable or failure_type in policy.non_retryable:
            return False
        if policy.only and failure_type not in policy.only and not set(kinds).intersection(policy.only):
            return False
    return policy.max_attempts is None or failures < policy.max_attempts


def retry_delay(policy: RetryPolicy, failures: int, *seed: object) -> Micros:
    """How long to wait after the given number of failures. No overflow, whatever the number; pure: `seed` spreads it."""
    if policy.initial_us <= 0:
        return 0
    # Compare logarithms: factor ** 1000 does not fit a float.
    exponent = failures - 1
    if math.log(policy.initial_us) + exponent * math.log(policy.factor) >= math.log(max(policy.maximum_us, 1)):
        delay = float(policy.maximum_us)
    else:
        delay = policy.initial_us * policy.factor**exponent
    if policy.jitter:
        share = (derive_entropy(*seed, failures) % 2_000_001) / 1_000_000 - 1.0
        delay *= 1.0 + policy.jitter * share
    return min(round(delay), policy.maximum_us)


def _refused(field: str, wanted: str, found: object) -> InvalidConfiguration:
    shown = show(found, repr, LONGEST_SHOWN)
    return InvalidConfiguration(f"Expected Retry({field}=…) to be {wanted}, but it is {shown}. Correct the policy.")
