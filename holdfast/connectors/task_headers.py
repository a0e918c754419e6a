"""What the headers of a task say about the result of its call, under the names that Camunda's connectors have.

resultVariable     the variable that the response becomes; without it and resultExpression that is `response`
resultExpression   FEEL over `response`; its context becomes variables
errorExpression    FEEL over `response`, and over `error` {code, message, variables} if the call failed:
                   bpmnError(code, message, variables), jobError(message, variables, retries, backoff), or null
retryBackoff       a duration of ISO 8601: the pause before the next attempt
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.connectors.http_failures import make_refusal
from holdfast.core.safe_texts import name_type
from holdfast.core.times.durations import parse_duration
from holdfast.errors import ApplicationFailure, BpmnError, FeelError, InvalidSchedule, RetryAfter

if TYPE_CHECKING:
    from holdfast.feel.expressions import Expression

_BPMN: Final = "bpmnError"
_JOB: Final = "jobError"
_FUNCTIONS: Final = (_BPMN, _JOB)
_KIND: Final = "errorType"
_EXACT: Final = 2**53
"""Whole numbers below it are written in full."""


@dataclass(frozen=True, slots=True)
class TaskHeaders:
    """The headers of a task that say what becomes of its call."""

    result_variable: str = ""
    result_expression: str = ""
    error_expression: str = ""
    backoff: timedelta | None = None

    def make_result(self, response: Any, for_expressions: Mapping[str, Any]) -> dict[str, Any]:
        """The variables that the task sets. Raises CallFailed if the expression gives no context."""
        result: dict[str, Any] = {}
        if self.result_variable:
            result[self.result_variable] = response
        if self.result_expression:
            value = _evaluate(self.result_expression, "resultExpression", {"response": for_expressions})
            if not isinstance(value, Mapping):
                raise make_refusal(
                    "resultExpression to give a context",
                    f"it gives {name_type(value)}",
                    "Write for instance ={a: response.body.a}.",
                )
            result.update(value)
        return result if self.result_variable or self.result_expression else {"response": response}

    def raise_error(self, context: Mapping[str, Any]) -> None:
        """Raise what errorExpression makes of a response or an error; nothing if it gives null."""
        if not self.error_expression:
            return
        value = _evaluate(self.error_expression, "errorExpression", {**context, _BPMN: _bpmn_error, _JOB: _job_error})
        if value is None or value == {}:
            return
        kind = value.get(_KIND) if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or kind not in _FUNCTIONS:
            raise make_refusal(
                "errorExpression to give null, bpmnError(…) or jobError(…)", f"it gives {name_type(value)}", "Correct it."
            )
        message = str(value.get("message") or "")
        variables = value.get("variables") or {}
        if kind == _BPMN:
            code = value.get("code")
            if not isinstance(code, str) or not code.strip():
                raise make_refusal(
                    "bpmnError(…) to have a code, a text", f"it is {name_type(code)}", "Correct errorExpression."
                )
            raise BpmnError(code, message, variables if isinstance(variables, Mapping) else {})
        raise _make_job_error(message or "errorExpression says that the call failed", value)


def read_task_headers(headers: Mapping[str, str]) -> TaskHeaders:
    """The headers of a task that are known here. Raises CallFailed for a duration that is none."""
    backoff = headers.get("retryBackoff", "").strip()
    return TaskHeaders(
        headers.get("resultVariable", "").strip(),
        headers.get("resultExpression", "").strip(),
        headers.get("errorExpression", "").strip(),
        _read_duration(backoff, "retryBackoff") if backoff else None,
    )


def _read_duration(text: str, what: str) -> timedelta:
    try:
        return timedelta(microseconds=parse_duration(text).about)
    except InvalidSchedule:
        raise make_refusal(
            f"{what} to be a duration of ISO 8601", f"it is {text!r:.100}", "Write for instance PT30S."
        ) from None


def _make_job_error(message: str, value: Mapping[str, Any]) -> Exception:
    """A failure that is retried, unless jobError says that no retries are left."""
    retries, backoff = value.get("retries"), value.get("backoff")
    if retries == 0:
        return ApplicationFailure(message, type="JobError", details=value.get("variables"), non_retryable=True)
    if isinstance(backoff, str) and backoff:
        return RetryAfter(_read_duration(backoff, "the backoff of jobError(…)"), message, details=value.get("variables"))
    return ApplicationFailure(message, type="JobError", details=value.get("variables"))


def _bpmn_error(code: Any, message: Any = "", variables: Any = None) -> dict[str, Any]:
    return {_KIND: _BPMN, "code": code, "message": message, "variables": variables}


def _job_error(message: Any, variables: Any = None, retries: Any = None, backoff: Any = None) -> dict[str, Any]:
    return {_KIND: _JOB, "message": message, "variables": variables, "retries": retries, "backoff": backoff}


# --- FEEL: imported when a task has an expression, since most programs need none ---


@lru_cache(maxsize=256)
def _compile(text: str) -> Expression:
    from holdfast.feel.expressions import compile as compile_feel  # noqa: PLC0415

    return compile_feel(text)


def _evaluate(text: str, what: str, context: Mapping[str, Any]) -> Any:
    try:
        return _to_json(_compile(text).evaluate(context))
    except FeelError as error:
        raise make_refusal(f"{what} to be FEEL that can be evaluated", str(error).rstrip("."), "Correct it.") from error


def _to_json(value: Any) -> Any:
    """A value of FEEL as processes keep it: numbers as they are, dates and durations as texts of ISO 8601."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if abs(value) < _EXACT and value == int(value) else msgspec.Raw(str(value).encode())
    if isinstance(value, Mapping):
        return {str(name): _to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(one) for one in value]
    from holdfast.feel.temporal.formatting import to_text  # noqa: PLC0415
    from holdfast.feel.values import Function, Range  # noqa: PLC0415

    if isinstance(value, Function | Range):
        raise FeelError("Expected a value that variables can hold, but found a function or a range. Take it apart.")
    return to_text(value)
