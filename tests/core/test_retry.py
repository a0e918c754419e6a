"""Retry arithmetic: how long, how often, and never an overflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Retry
from holdfast.core.instants import LONGEST
from holdfast.core.retry import DEFAULT_RETRY, RetryPolicy, may_retry, retry_delay
from holdfast.errors import InvalidConfiguration, InvalidDuration

POLICIES = st.builds(
    RetryPolicy,
    initial_us=st.integers(0, LONGEST),
    factor=st.floats(1.0, 1e6),
    maximum_us=st.integers(0, LONGEST),
    jitter=st.floats(0.0, 1.0),
)
FAILURES = st.integers(1, 100_000)


@given(POLICIES, FAILURES, st.text())
def test_delay_lies_between_nothing_and_the_maximum(policy: RetryPolicy, failures: int, seed: str) -> None:
    assert 0 <= retry_delay(policy, failures, seed) <= policy.maximum_us


@given(POLICIES)
def test_A2_attempt_one_thousand_does_not_overflow(policy: RetryPolicy) -> None:
    assert 0 <= retry_delay(policy, 1_000, "seed") <= policy.maximum_us


@given(st.integers(1, LONGEST), st.floats(1.0, 1e6), st.integers(1, LONGEST), FAILURES)
def test_delay_without_jitter_never_shrinks(initial: int, factor: float, maximum: int, failures: int) -> None:
    policy = RetryPolicy(initial_us=initial, factor=factor, maximum_us=maximum, jitter=0.0)

    assert retry_delay(policy, failures) <= retry_delay(policy, failures + 1)


@given(st.integers(1, 10**9), st.floats(1.0, 10.0), st.floats(0.0, 1.0), st.integers(1, 20), st.text())
def test_jitter_keeps_to_its_share(initial: int, factor: float, jitter: float, failures: int, seed: str) -> None:
    plain = RetryPolicy(initial_us=initial, factor=factor, maximum_us=LONGEST, jitter=0.0)
    spread = RetryPolicy(initial_us=initial, factor=factor, maximum_us=LONGEST, jitter=jitter)

    middle = retry_delay(plain, failures, seed)
    found = retry_delay(spread, failures, seed)

    assert middle * (1 - jitter) - 1 <= found <= middle * (1 + jitter) + 1


@given(POLICIES, FAILURES, st.text())
def test_delay_depends_on_its_seed_alone(policy: RetryPolicy, failures: int, seed: str) -> None:
    assert retry_delay(policy, failures, seed) == retry_delay(policy, failures, seed)


def test_jitter_spreads_executions_that_fail_together() -> None:
    delays = {retry_delay(DEFAULT_RETRY, 3, f"execution-{number}") for number in range(100)}

    assert len(delays) > 90


def test_delay_grows_by_the_factor_until_the_maximum() -> None:
    policy = Retry(initial=1, factor=2, maximum=10, jitter=0)

    seconds = [retry_delay(policy, failures) / 1_000_000 for failures in range(1, 7)]

    assert seconds == [1, 2, 4, 8, 10, 10]


def test_no_initial_wait_means_no_wait_ever() -> None:
    assert retry_delay(Retry(initial=0, jitter=1), 1_000, "seed") == 0


@given(st.integers(1, 1_000), st.integers(1, 1_000))
def test_attempts_are_bounded_by_the_policy(most: int, failures: int) -> None:
    assert may_retry(Retry(max_attempts=most), failures, "Error", non_retryable=False) == (failures < most)


def test_policy_without_a_bound_tries_without_end() -> None:
    assert may_retry(DEFAULT_RETRY, 10**9, "Error", non_retryable=False)


def test_non_retryable_type_ends_the_attempts() -> None:
    policy = Retry(non_retryable=("Refused", ValueError))

    assert not may_retry(policy, 1, "Refused", non_retryable=False)
    assert not may_retry(policy, 1, "ValueError", non_retryable=False)
    assert may_retry(policy, 1, "KeyError", non_retryable=False)


def test_non_retryable_failure_ends_the_attempts() -> None:
    assert not may_retry(DEFAULT_RETRY, 1, "Error", non_retryable=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("max_attempts", 1.5),
        ("max_attempts", True),
        ("max_attempts", "3"),
        ("factor", 0.5),
        ("factor", float("nan")),
        ("factor", float("inf")),
        ("factor", "2"),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("jitter", float("nan")),
        ("non_retryable", "ValueError"),
        ("non_retryable", (3,)),
        ("non_retryable", 3),
    ],
)
def test_policy_that_cannot_be_right_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=rf"^Expected Retry\({field}=…\) to be .*, but it is "):
        Retry(**{field: value})


@pytest.mark.parametrize("field", ["initial", "maximum"])
@pytest.mark.parametrize("value", [-1, timedelta(days=-1), float("nan"), float("inf"), 1e300, "1s", None])
def test_duration_that_cannot_be_right_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidDuration, match=rf"^Expected Retry\({field}=…\) to be .*, but it is "):
        Retry(**{field: value})
