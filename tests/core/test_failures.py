"""Failures: whatever was raised can be recorded, and comes back as it was described."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ApplicationFailure
from holdfast.core import codec
from holdfast.core.events import WorkflowFailed
from holdfast.core.failures import LONGEST_MESSAGE, Failure, decode_failure_details, describe_exception
from holdfast.errors import ActivityFailed, EncodingError


def record(error: BaseException) -> Failure:
    """What history gives back."""
    body = codec.encode((WorkflowFailed(failure=describe_exception(error)),))
    (event,) = codec.decode_events(body, codec.SCHEMA)
    assert isinstance(event, WorkflowFailed)
    return event.failure


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_plain_exception_is_kept_by_class_and_message() -> None:
    failure = record(raised(ValueError("no such thing")))

    assert (failure.type, failure.message, failure.details, failure.non_retryable) == (
        "ValueError",
        "no such thing",
        None,
        False,
    )
    assert failure.trace.endswith("in raised")


def test_application_failure_says_what_is_kept() -> None:
    failure = record(ApplicationFailure("declined", type="CardDeclined", details={"code": 51}, non_retryable=True))

    assert (failure.type, failure.message, failure.non_retryable) == ("CardDeclined", "declined", True)
    assert decode_failure_details(failure) == {"code": 51}


def test_details_of_a_step_are_kept() -> None:
    assert decode_failure_details(record(ActivityFailed("it failed", details=[1, 2]))) == [1, 2]


def test_details_that_json_cannot_hold_are_kept_as_text() -> None:
    assert decode_failure_details(record(ApplicationFailure("no", details={1, object}))) == repr({1, object})


def test_long_message_is_cut() -> None:
    assert len(record(ValueError("x" * 100_000)).message) == LONGEST_MESSAGE


def test_deep_trace_is_cut() -> None:
    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$") as caught:
        dive(100)
    failure = record(caught.value)

    assert len(failure.trace.splitlines()) == 30


def test_value_that_cannot_be_encoded_is_not_tried_again() -> None:
    assert record(EncodingError("no JSON")).non_retryable


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I cannot be described")

    __repr__ = __str__


class Ended(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


class AnswersEverything(Exception):
    def __getattr__(self, name: str) -> Any:
        return dict[str, Any]()[name]


class StrangeText(str):
    __slots__ = ()

    def __getitem__(self, _key: Any) -> str:
        raise RuntimeError("not by me")

    encode = __getitem__  # type: ignore[assignment]


class StrangelyShown(Exception):
    def __str__(self) -> str:
        return StrangeText("shown")


class Numbered(type):
    @property
    def __name__(cls) -> int:  # type: ignore[override]
        return 7


class StrangelyNamed(Exception, metaclass=Numbered):
    pass


class WithoutTrace(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("\ud800"), "ValueError"),
        (Silent(), "Silent"),
        (Ended(), "Ended"),
        (AnswersEverything(), "AnswersEverything"),
        (StrangelyShown(), "StrangelyShown"),
        (StrangelyNamed(), "StrangelyNamed"),
        (WithoutTrace(), "WithoutTrace"),
        (ApplicationFailure("no", type=ValueError), "<class 'ValueError'>"),  # type: ignore[arg-type]
        (ApplicationFailure("no", type="\ud800"), "\\ud800"),
        (ApplicationFailure("no", details=Silent()), "ApplicationFailure"),
        (ApplicationFailure("no", non_retryable="yes"), "ApplicationFailure"),  # type: ignore[arg-type]
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ExceptionGroup("two", [ValueError(1), KeyError(2)]), "ExceptionGroup"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
def test_whatever_is_raised_can_be_recorded(error: BaseException, kind: str) -> None:
    failure: Any = record(error)

    assert failure.type == kind
    assert isinstance(failure.message, str)
