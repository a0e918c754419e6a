"""Checks of what starts, signals and children are given beside their arguments: delays, timeouts, policies, texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.core.chains import Chain
from holdfast.core.instants import LONGEST, Duration, Instant, from_datetime, to_micros
from holdfast.core.retry import RetryPolicy
from holdfast.core.safe_texts import LONGEST_SHOWN, name_type, show
from holdfast.errors import InvalidArguments, InvalidConfiguration, InvalidDuration, InvalidTime

CHAIN_OPTIONS: Final = frozenset({"execution_timeout", "run_timeout", "retry"})
"""The options of a start that make its chain."""


def check_start_at(delay: Duration | datetime | None, now: Instant) -> Instant | None:
    """When a start with this delay begins; None: at once. Raises InvalidDuration or InvalidTime."""
    if delay is None:
        return None
    what = "the delay of a start"
    due = from_datetime(delay, what) if isinstance(delay, datetime) else now + to_micros(delay, what)
    if isinstance(delay, datetime) and due > now + LONGEST:
        raise InvalidTime(
            f"Expected a start to be delayed by a hundred years at most, but it is to begin at {delay.isoformat()}. "
            "Correct the date."
        )
    return due if due > now else None


def check_chain(execution_timeout: Duration | None, run_timeout: Duration | None, retry: Any) -> Chain | None:
    """The timeouts and the retry policy of an execution; None if it has none. Raises InvalidDuration."""
    policy = check_retry(retry)
    if execution_timeout is None and run_timeout is None and policy is None:
        return None
    return Chain(
        run_timeout_us=_check_timeout(run_timeout, "run_timeout"),
        execution_timeout_us=_check_timeout(execution_timeout, "execution_timeout"),
        retry=policy,
    )


def change_chain(chain: Chain | None, options: Mapping[str, Any]) -> Chain | None:
    """A chain with those of its options changed that are given; None if nothing is left of it. Raises InvalidDuration."""
    known = chain or Chain()
    changes: dict[str, Any] = {
        f"{name}_us": _check_timeout(options[name], name) for name in ("execution_timeout", "run_timeout") if name in options
    }
    if "retry" in options:
        changes["retry"] = check_retry(options["retry"])
    changed = msgspec.structs.replace(known, **changes)
    return None if changed == Chain() else changed


def check_retry(retry: Any) -> RetryPolicy | None:
    """The retry policy of a workflow. Raises InvalidConfiguration for anything else."""
    if retry is None or isinstance(retry, RetryPolicy):
        return retry
    raise InvalidConfiguration(
        f"Expected retry=… of a workflow to be made by Retry(…), but it is {show(retry, repr, LONGEST_SHOWN)}. "
        "Write for instance retry=Retry(max_attempts=3)."
    )


def check_texts(texts: Any, what: str, limit: int, *, may_be_pairs: bool = False) -> dict[str, str]:
    """Metadata or headers: texts by name, of at most `limit` bytes as JSON together. Raises InvalidArguments.

    `may_be_pairs`: whether pairs are taken for a mapping, as recorded executions may have passed them to their children.
    """
    if texts is None:
        return {}
    try:
        if not may_be_pairs and not isinstance(texts, Mapping):
            raise TypeError(f"it is of type {name_type(texts)}")
        given = dict(texts)
        found = msgspec.convert(given, dict[str, str])
        size = len(msgspec.json.encode(found))
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        example = "{'traceparent': '00-…'}" if what == "headers" else "{'channel': 'web'}"
        reason = _find_no_text(texts) or str(error)
        raise InvalidArguments(f"Expected {what} to map text to text, but {reason}. Pass for instance {example}.") from None
    if size > limit:
        raise InvalidArguments(
            f"Expected {what} to have at most {limit} bytes as JSON, but it has {size}. Pass large values as arguments."
        )
    return found


def _find_no_text(texts: Any) -> str:
    """The first key or value of metadata or headers that is no text, in words; empty if there is none, or no mapping."""
    for key, value in texts.items() if isinstance(texts, Mapping) else ():
        if not isinstance(key, str):
            return f"the key {show(key, repr, LONGEST_SHOWN)} is of type {name_type(key)}"
        if not isinstance(value, str):
            return f"the value of '{key}' is of type {name_type(value)}"
    return ""


def _check_timeout(timeout: Duration | None, name: str) -> int | None:
    if timeout is None:
        return None
    length = to_micros(timeout, f"{name}=…")
    if length == 0:
        raise InvalidDuration(
            f"Expected {name}=… to be longer than nothing, but it is {show(timeout, repr, LONGEST_SHOWN)}. "
            "Leave it out for no timeout."
        )
    return length
