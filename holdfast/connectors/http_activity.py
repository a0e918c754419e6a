"""The public function: an activity that calls services by HTTP, for tasks of processes and for workflows."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.activities.definitions import Activity
from holdfast.connectors.addresses import make_guard
from holdfast.connectors.allow_lists import make_allow_list
from holdfast.connectors.connecting import Connector
from holdfast.connectors.http_exchanges import HttpCaller, HttpLimits, do_nothing
from holdfast.connectors.http_failures import CallFailed, make_refusal
from holdfast.connectors.http_outcomes import fail, settle
from holdfast.connectors.http_requests import SAFE_METHODS, HttpInputs, HttpRequest, add_header, make_request
from holdfast.connectors.task_headers import TaskHeaders, read_task_headers
from holdfast.core.instants import Duration, to_micros
from holdfast.core.retry import RetryPolicy
from holdfast.engine.activities.attempt import ActivityInfo, activity_info, current, heartbeat
from holdfast.errors import InvalidConfiguration, RetryAfter
from holdfast.workflow import activity

HTTP: Final = "holdfast:http"
"""The type of the tasks that the activity serves by default."""
CAMUNDA_HTTP: Final = "io.camunda:http-json:1"
"""The type that Camunda's REST connector gives to its tasks."""
IDEMPOTENCY_KEY: Final = "Idempotency-Key"

HttpActivity = Activity[..., dict[str, Any], Coroutine[Any, Any, dict[str, Any]]]


def http_activity(
    *,
    allow: Iterable[str],
    name: str = HTTP,
    allow_private: Iterable[str] = (),
    secrets: Mapping[str, str] | None = None,
    connect_timeout: Duration = 10,
    read_timeout: Duration = 30,
    total_timeout: Duration = 60,
    max_response_bytes: int = 1024 * 1024,
    max_redirects: int = 5,
    tls: ssl.SSLContext | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
) -> HttpActivity:
    """An activity that calls services by HTTP: `Engine(…, activities=[http_activity(allow=['api.example.com'])])`.

    It serves tasks of the type `name`; with `name='io.camunda:http-json:1'` those of Camunda's REST connector. Its inputs
    are `url`, `method`, `headers`, `queryParameters`, `body`, `authentication`, `connectionTimeoutInSeconds` and
    `readTimeoutInSeconds`; its result is `{'response': {'status': …, 'headers': …, 'body': …}}`.

    `allow` names the hosts that may be called: 'api.example.com', '*.example.com', 'https://api.example.com:8443', or '*'
    for every public one. Whatever a name resolves to, private, loopback, link-local and other special addresses are refused,
    also behind redirects, unless `allow_private` names the network ('10.1.0.0/16') or the host. Proxy settings are ignored.

    `secrets` replace `{{secrets.NAME}}` in headers and `authentication`, so that history does not hold them. The timeouts
    are the most that a task may ask for. A response has at most `max_response_bytes`, unpacked. `tls` replaces the system's
    certificate authorities. `max_redirects=0` gives redirects back as they are. The last four are those of `@activity`.

    Statuses from 500 on, 408, 425, 429 and broken connections are retried, at the time that `Retry-After` says. Other
    statuses from 400 on, and what is refused, fail at once. Requests that change something carry an `Idempotency-Key`, the
    same for all attempts.
    """
    limits = HttpLimits(
        _read_seconds(connect_timeout, "connect_timeout"),
        _read_seconds(read_timeout, "read_timeout"),
        _read_seconds(total_timeout, "total_timeout"),
        _check_whole(max_response_bytes, "max_response_bytes", 1),
        _check_whole(max_redirects, "max_redirects", 0),
    )
    connector = Connector(make_guard(allow_private), ssl.create_default_context() if tls is None else tls)
    caller = HttpCaller(make_allow_list(allow), connector, limits)
    decorate = activity(name=name, retry=retry, queue=queue, max_concurrent=max_concurrent, rate_per_second=rate_per_second)
    return decorate(make_function(caller, check_secrets(secrets or {})))


def make_function(caller: HttpCaller, secrets: Mapping[str, str]) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """The function of the activity. Its parameters have the names that Camunda's REST connector gives to its inputs."""

    async def call_http(
        url: Any,
        method: Any = "GET",
        *,
        headers: Any = None,
        queryParameters: Any = None,  # noqa: N803 - the name that diagrams have
        body: Any = None,
        authentication: Any = None,
        connectionTimeoutInSeconds: Any = None,  # noqa: N803 - likewise
        readTimeoutInSeconds: Any = None,  # noqa: N803 - likewise
    ) -> dict[str, Any]:
        attempt = activity_info() if current.get(None) is not None else None
        task = read_task_headers({} if attempt is None else attempt.task_headers)
        limits = replace(
            caller.limits,
            connect_seconds=_lower(caller.limits.connect_seconds, connectionTimeoutInSeconds, "connectionTimeoutInSeconds"),
            read_seconds=_lower(caller.limits.read_seconds, readTimeoutInSeconds, "readTimeoutInSeconds"),
        )
        inputs = HttpInputs(url, method, headers, queryParameters, body, authentication)
        request = _mark(make_request(inputs, secrets), attempt)
        try:
            response = await caller.call(request, limits, do_nothing if attempt is None else heartbeat)
        except CallFailed as failure:
            raise _describe(failure, task) from failure.__cause__
        return settle(request, response, task, datetime.now(UTC))

    return call_http


def _mark(request: HttpRequest, attempt: ActivityInfo | None) -> HttpRequest:
    """A request that changes something, with a key by which the service knows one that is sent again."""
    if attempt is None or request.method in SAFE_METHODS:
        return request
    return add_header(request, IDEMPOTENCY_KEY, attempt.idempotency_key)


def _describe(failure: CallFailed, task: TaskHeaders) -> Exception:
    """What the attempt raises for a call that had no answer. Raises what errorExpression makes of it."""
    fail(failure, task, code=failure.type or "")
    if failure.non_retryable or task.backoff is None:
        return failure
    return RetryAfter(task.backoff, str(failure))


def check_secrets(secrets: Mapping[str, str]) -> Mapping[str, str]:
    """The secrets by name. Raises InvalidConfiguration, which shows none, if one of them is no text."""
    if not isinstance(secrets, Mapping) or not all(isinstance(one, str) for pair in secrets.items() for one in pair):
        raise InvalidConfiguration(
            "Expected secrets=… to be texts by name, but they are not. "
            "Write for instance secrets={'TOKEN': os.environ['TOKEN']}."
        )
    return dict(secrets)


def _read_seconds(given: Duration, what: str) -> float:
    seconds = to_micros(given, what) / 1_000_000
    if seconds <= 0:
        raise InvalidConfiguration(f"Expected {what}=… to be above zero, but it is {given!r}. Give seconds or a timedelta.")
    return seconds


def _check_whole(given: int, what: str, least: int) -> int:
    if type(given) is not int or given < least:
        raise InvalidConfiguration(f"Expected {what}=… to be a whole number of at least {least}, but it is {given!r}.")
    return given


def _lower(most: float, given: Any, what: str) -> float:
    """What a task asks for, in seconds, up to what the operator permits. 0 and nothing mean: as long as is permitted."""
    if given is None or given == "":
        return most
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = -1.0
    if isinstance(given, bool) or not seconds >= 0:
        raise make_refusal(f"{what} to be a number of seconds", f"it is {given!r:.100}", "Write for instance 20.")
    return min(most, seconds) if seconds else most
