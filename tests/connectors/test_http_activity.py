"""The activity as tasks and workflows use it: results, retries, error events, cancelling, and what history keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from holdfast import (
    ActivityFailed,
    BpmnError,
    Context,
    Engine,
    Retry,
    http_activity,
    workflow,
)
from holdfast.errors import InvalidConfiguration, InvalidDuration
from holdfast.testing import TestEngine
from tests.connectors.loopback_service import LoopbackService, drip, hang, respond, serving
from tests.engine.support.jobs import run_job

JSON = "Content-Type: application/json; charset=utf-8"


@workflow
async def task(
    ctx: Context,
    variables: dict[str, Any],
    headers: dict[str, str] | None = None,
    attempts: int = 1,
    kind: str = "holdfast:http",
) -> Any:
    try:
        return await run_job(ctx, kind, variables, headers, retry=Retry(max_attempts=attempts, initial=1, jitter=0))
    except BpmnError as error:
        return [error.code, str(error), error.variables]
    except ActivityFailed as error:
        return [error.type, error.details]


def make_engine(service: LoopbackService, **options: Any) -> TestEngine:
    activity = http_activity(allow=[f"127.0.0.1:{service.port}"], allow_private=["127.0.0.1"], **options)
    return TestEngine(workflows=[task], activities=[activity])


async def run(
    service: LoopbackService,
    headers: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    attempts: int = 1,
    **variables: Any,
) -> Any:
    async with make_engine(service, **(options or {})) as engine:
        handle = await engine.start(task, {"url": service.url, **variables}, dict(headers or {}), attempts)
        return await handle.result()


# --- results ---


async def test_response_becomes_the_variable_response() -> None:
    async with serving(respond(200, b'{"total": 0.10, "n": 12345678901234567890}', JSON, "X-A: 1", "x-a: 2")) as service:
        result = await run(service)

    assert result["response"]["status"] == 200
    assert result["response"]["headers"]["x-a"] == "1, 2"
    assert result["response"]["body"] == {"total": 0.1, "n": 12345678901234567890}


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (respond(200, b""), None),
        (respond(204), None),
        (respond(200, "ä".encode("latin-1"), "Content-Type: text/plain; charset=latin-1"), "ä"),
        (respond(200, "ä".encode(), "Content-Type: text/html"), "ä"),
        (respond(200, b"<a/>", "Content-Type: application/atom+xml"), "<a/>"),
        (respond(200, b'{"a":1}', "Content-Type: application/problem+json"), {"a": 1}),
        (respond(200, b"no json", "Content-Type: application/json"), "no json"),
        (respond(200, b"[1e999]", "Content-Type: application/json"), "[1e999]"),
        (respond(200, b"plain"), "plain"),
        (respond(200, b"\xff\x00", "Content-Type: image/png"), "/wA="),
        (respond(200, b"\xff", "Content-Type: text/plain; charset=nonsense"), "/w=="),
        (respond(200, "ä".encode("utf-16"), 'Content-Type: text/plain; a="; charset=x"; b; Charset="UTF-16"'), "ä"),
        (respond(200, "я".encode("cp1251"), "Content-Type: text/plain;charset=Windows-1251"), "я"),
        (respond(200, "日".encode("shift_jis"), "Content-Type: text/plain; charset=sjis"), "日"),
        (respond(200, b"\xff", "Content-Type: text/plain; charset=us-ascii"), "/w=="),
        (respond(200, b"abc-", "Content-Type: text/plain; charset=punycode"), "YWJjLQ=="),
        (respond(200, b"abc-", "Content-Type: text/plain; charset=undefined"), "YWJjLQ=="),
        (respond(200, b"abc-", "Content-Type: text/plain; charset=idna"), "YWJjLQ=="),
        (respond(200, b"abc-", "Content-Type: text/plain; charset=rot13"), "YWJjLQ=="),
        (respond(200, b"abc-", "Content-Type: text/plain; charset=" + "a" * 10_000), "YWJjLQ=="),
        (respond(200, b'["a"]', "Content-Type: application/json; charset=punycode"), ["a"]),
        (respond(200, b"\xff\x00"), "/wA="),
        (respond(200, b"x", "Content-Type: ;;;"), "x"),
    ],
)
async def test_body_becomes_a_value_by_its_media_type(answer: bytes, body: Any) -> None:
    async with serving(answer) as service:
        assert (await run(service))["response"]["body"] == body


async def test_result_goes_where_the_headers_of_the_task_say() -> None:
    answer = respond(200, b'{"id": 7, "tags": ["a", "b"], "at": "2026-01-01", "price": 1.50}', JSON)
    async with serving(*[answer] * 3) as service:
        named = await run(service, {"resultVariable": "order"})
        mapped = await run(
            service,
            {
                "resultExpression": "={id: response.body.id, n: count(response.body.tags), "
                "price: response.body.price, d: date(response.body.at)}"
            },
        )
        both = await run(service, {"resultVariable": "r", "resultExpression": "={ok: response.status = 200}"})

    assert named["order"]["body"]["id"] == 7
    assert list(named) == ["order"]
    assert mapped == {"id": 7, "n": 2, "price": 1.5, "d": "2026-01-01"}
    assert both["ok"] is True
    assert both["r"]["status"] == 200


@pytest.mark.parametrize("expression", ["=5", "={", "={f: function(x) x}", "={r: [1..5]}"])
async def test_expression_that_gives_no_variables_fails_the_task(expression: str) -> None:
    async with serving(respond()) as service:
        assert (await run(service, {"resultExpression": expression}))[0] == "HttpRefused"


async def test_workflow_calls_it_too() -> None:
    async with serving(respond(200, b'{"a": 1}', JSON)) as service:
        call = http_activity(allow=[f"127.0.0.1:{service.port}"], allow_private=["127.0.0.1"])

        @workflow
        async def ask(ctx: Context, url: str) -> Any:
            return await ctx.run(call, url, "POST", body={"b": 2}, queryParameters={"q": 1})

        async with TestEngine(workflows=[ask], activities=[call]) as engine:
            result = await (await engine.start(ask, service.url)).result()

    assert result["response"]["body"] == {"a": 1}
    assert service.requests[0].startswith(b"POST /?q=1 ")


async def test_it_serves_the_type_of_camundas_connector() -> None:
    async with serving(respond()) as service:
        call = http_activity(allow=["*:*"], allow_private=["127.0.0.1"], name="io.camunda:http-json:1")
        async with TestEngine(workflows=[task], activities=[call]) as engine:
            variables = {
                "url": service.url,
                "method": "get",
                "authentication": {"type": "noAuth"},
                "connectionTimeoutInSeconds": "20",
                "readTimeoutInSeconds": 0,
                "headers": {"Accept": "*/*"},
                "queryParameters": {},
            }
            handle = await engine.start(task, variables, {}, kind="io.camunda:http-json:1")

            assert (await handle.result())["response"]["status"] == 200


async def test_function_can_be_called_in_unit_tests() -> None:
    async with serving(respond(200, b"hi")) as service:
        call = http_activity(allow=["*:*"], allow_private=["127.0.0.1"])

        assert (await call(service.url))["response"]["body"] == "hi"


# --- failures ---


@pytest.mark.parametrize("status", [500, 503, 429, 408, 425])
async def test_trouble_of_the_service_is_retried(status: int) -> None:
    async with serving(respond(status), respond(200)) as service:
        result = await run(service, attempts=2, method="POST")

    assert result["response"]["status"] == 200
    keys = [line for request in service.requests for line in request.split(b"\r\n") if line.startswith(b"Idempotency-Key: ")]
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_broken_connection_is_retried() -> None:
    async with serving(b"", respond(200)) as service:
        assert (await run(service, attempts=2))["response"]["status"] == 200
        assert b"Idempotency-Key" not in service.requests[0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
async def test_mistake_of_the_caller_is_not_retried(status: int) -> None:
    async with serving(respond(status, b'{"why": "x"}', JSON)) as service:
        kind, details = await run(service, attempts=5)

    assert kind == "HttpStatus"
    assert details["response"]["status"] == status
    assert details["response"]["body"] == {"why": "x"}
    assert len(service.requests) == 1


async def test_long_body_of_a_failure_is_cut_off() -> None:
    async with serving(respond(400, b"x" * 100_000)) as service:
        _, details = await run(service)

    assert len(details["response"]["body"]) < 5_000


async def test_retry_after_is_obeyed() -> None:
    async with serving(respond(429, b"", "Retry-After: 3600"), respond(200)) as service, make_engine(service) as engine:
        began = engine.clock.now()
        handle = await engine.start(task, {"url": service.url}, {}, 3)
        await handle.result()

        assert timedelta(seconds=3600) <= timedelta(microseconds=engine.clock.now() - began) < timedelta(seconds=3700)


async def test_refused_host_fails_at_once() -> None:
    async with serving() as service:
        assert (await run(service, attempts=5, url="http://169.254.169.254/"))[0] == "HttpRefused"
        assert (await run(service, attempts=5, url="file:///etc/passwd"))[0] == "HttpRefused"


@pytest.mark.parametrize("seconds", [-1, "soon", True, "nan", []])
async def test_timeout_that_is_none_fails_at_once(seconds: Any) -> None:
    async with serving() as service:
        assert (await run(service, readTimeoutInSeconds=seconds))[0] == "HttpRefused"


async def test_task_may_ask_for_less_time_but_not_for_more() -> None:
    async with serving(hang, hang) as service:
        less = await run(service, readTimeoutInSeconds=0.05)
        more = await run(service, options={"read_timeout": 0.05}, readTimeoutInSeconds=3600)

    assert less[0] == more[0] == "HttpTimedOut"


# --- error expressions ---


async def test_error_expression_makes_an_error_event_of_a_status() -> None:
    expression = (
        '=if error.code = "404" then bpmnError("no-such-order", "gone", {why: error.variables.response.body.why}) else null'
    )
    async with serving(respond(404, b'{"why": "sold"}', JSON), respond(400)) as service:
        code, message, variables = await run(service, {"errorExpression": expression})
        assert (code, variables) == ("no-such-order", {"why": "sold"})
        assert message.endswith("gone")
        assert (await run(service, {"errorExpression": expression}))[0] == "HttpStatus"


async def test_error_expression_sees_responses_that_succeeded() -> None:
    expression = '=if response.body.ok = false then bpmnError("refused") else null'
    async with serving(respond(200, b'{"ok": false}', JSON), respond(200, b'{"ok": true}', JSON)) as service:
        assert (await run(service, {"errorExpression": expression}))[0] == "refused"
        assert (await run(service, {"errorExpression": expression}))["response"]["status"] == 200


async def test_error_expression_sees_calls_that_were_not_answered() -> None:
    expression = '=if error.code = "HttpConnectionFailed" then bpmnError("down", error.message) else null'
    async with serving(b"") as service:
        assert (await run(service, {"errorExpression": expression}))[0] == "down"


async def test_job_error_says_whether_it_is_retried() -> None:
    async with serving(respond(500), respond(500), respond(500)) as service:
        final = await run(service, {"errorExpression": '=jobError("give up", {}, 0)'}, attempts=3)
        assert final[0] == "JobError"
        assert len(service.requests) == 1
        again = await run(service, {"errorExpression": '=jobError("once more", {}, 1, "PT1S")'}, attempts=2)
        assert again[0] == "RetryAfter"
        assert len(service.requests) == 3


@pytest.mark.parametrize("expression", ["=5", '="x"', "=bpmnError(5)", "=(", "={a: 1}"])
async def test_error_expression_that_gives_something_else_fails_the_task(expression: str) -> None:
    async with serving(respond(404)) as service:
        assert (await run(service, {"errorExpression": expression}))[0] == "HttpRefused"


async def test_backoff_of_the_task_is_obeyed() -> None:
    async with serving(respond(500), b"", respond(200)) as service, make_engine(service) as engine:
        began = engine.clock.now()
        handle = await engine.start(task, {"url": service.url}, {"retryBackoff": "PT10M"}, 3)

        assert (await handle.result())["response"]["status"] == 200
        assert engine.clock.now() - began >= 2 * 600 * 1_000_000


async def test_backoff_that_is_no_duration_fails_the_task() -> None:
    async with serving() as service:
        assert (await run(service, {"retryBackoff": "soon"}))[0] == "HttpRefused"


# --- secrets, cancelling ---


async def test_secrets_reach_the_service_and_not_the_history() -> None:
    async with serving(respond(200)) as service, make_engine(service, secrets={"TOKEN": "s3cret"}) as engine:
        variables = {"url": service.url, "authentication": {"type": "bearer", "token": "{{secrets.TOKEN}}"}}
        handle = await engine.start(task, variables)
        await handle.result()

        assert b"Authorization: Bearer s3cret\r\n" in service.requests[0]
        assert "s3cret" not in str((await handle.history()).events)


async def test_cancelled_execution_ends_the_call() -> None:
    async with serving(drip) as service:
        call = http_activity(allow=["*:*"], allow_private=["127.0.0.1"], max_response_bytes=10**9)
        async with Engine("memory://", workflows=[task], activities=[call]) as engine:
            handle = await engine.start(task, {"url": service.url})
            while not service.requests:
                await asyncio.sleep(0)
            await handle.terminate()

            await asyncio.wait_for(service.is_left.wait(), 10)


# --- configuration ---


@pytest.mark.parametrize(
    "options",
    [
        {"allow": []},
        {"allow": ["a b"]},
        {"allow": "a.example"},
        {"allow": ["*"], "allow_private": "10.0.0.0/8"},
        {"allow": ["*"], "connect_timeout": 0},
        {"allow": ["*"], "read_timeout": -1},
        {"allow": ["*"], "max_response_bytes": 0},
        {"allow": ["*"], "max_redirects": -1},
        {"allow": ["*"], "max_redirects": True},
        {"allow": ["*"], "secrets": {"A": 5}},
        {"allow": ["*"], "secrets": ["A"]},
    ],
)
def test_wrong_option_is_refused_when_the_activity_is_made(options: Any) -> None:
    with pytest.raises((InvalidConfiguration, InvalidDuration)):
        http_activity(**options)
