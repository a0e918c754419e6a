"""What becomes of a call: a result, a failure that is tried again, or one that is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from holdfast.connectors.http_bodies import make_expression_value, make_value
from holdfast.connectors.http_failures import STATUS, CallFailed
from holdfast.connectors.http_reading import HttpResponse
from holdfast.connectors.http_requests import HttpRequest
from holdfast.connectors.task_headers import TaskHeaders
from holdfast.errors import ApplicationFailure, RetryAfter

RETRIED: Final = frozenset({408, 425, 429})
"""The statuses below 500 that say: not now."""
LONGEST_WAIT: Final = timedelta(days=1)
"""A service that asks for more patience than that is asked again after a day."""
MOST_SHOWN: Final = 4_096
"""Characters of a body of text that a failure keeps, and bytes of any other."""


def settle(request: HttpRequest, response: HttpResponse, headers: TaskHeaders, now: datetime) -> dict[str, Any]:
    """The result of a call that was answered. Raises what a status that is no success means."""
    if response.status < 400:
        for_expressions = make_expression_value(response)
        headers.raise_error({"response": for_expressions, "error": None})
        return headers.make_result(make_value(response), for_expressions)
    value = _shorten(response)
    url = request.url.without_query()
    is_final = response.status < 500 and response.status not in RETRIED
    remedy = (
        "Correct the request, or catch it: errorExpression makes an error event of it."
        if is_final
        else "It is tried again while attempts are left; after the last one, look at the service."
    )
    failure = CallFailed(
        f"Expected {request.method} {url} to succeed, but its status is {response.status}. {remedy}",
        STATUS,
        details={"response": value},
        is_final=is_final,
    )
    fail(failure, headers, code=str(response.status), response=make_expression_value(response))
    pause = None if is_final else read_retry_after(response, now) or headers.backoff
    if pause is not None:
        raise RetryAfter(pause, str(failure), details=failure.details)
    raise failure


def fail(failure: ApplicationFailure, headers: TaskHeaders, code: str, response: Any = None) -> None:
    """Raise what errorExpression makes of a failure, if it makes anything of it."""
    variables = {} if response is None else {"response": response}
    error = {"code": code, "message": str(failure), "variables": variables}
    headers.raise_error({"response": response, "error": error})


def read_retry_after(response: HttpResponse, now: datetime) -> timedelta | None:
    """How long a service asks to wait: seconds or a date (RFC 9110, section 10.2.3). None if it does not say."""
    text = (response.find("retry-after") or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:12]), 10**9)), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return min(max(at - now, timedelta(0)), LONGEST_WAIT)


def _shorten(response: HttpResponse) -> dict[str, Any]:
    """The response for a failure, which is kept: a long body is cut off."""
    value = make_value(response)
    if len(response.body) > MOST_SHOWN:
        text = response.body[:MOST_SHOWN].decode("utf-8", "replace")
        value["body"] = f"{text}…"
    return value
