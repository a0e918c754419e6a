"""Calls: framing, limits, timeouts and redirects, against a service on loopback that answers with any bytes it likes."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from typing import Any

import pytest

from holdfast.connectors.http_exchanges import HttpCaller, HttpLimits
from holdfast.connectors.http_failures import CallFailed
from holdfast.connectors.http_requests import HttpInputs, make_request
from tests.connectors.loopback_service import CERTIFICATES, Answer, drip, hang, make_caller, redirect, respond, serving

SHORT = HttpLimits(connect_seconds=5, read_seconds=0.05, total_seconds=5)


async def call(caller: HttpCaller, url: str, method: str = "GET", **inputs: Any) -> tuple[int, bytes]:
    response = await caller.call(make_request(HttpInputs(url, method, **inputs), {}))
    return response.status, response.body


async def fail(caller: HttpCaller, url: str, **inputs: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await call(caller, url, **inputs)
    return caught.value


# --- framing ---


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (respond(200, b"hello"), b"hello"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nokmore", b"ok"),
        (b"HTTP/1.0 200 OK\nX: y\n\nto the end", b"to the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: x\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + respond(200, b"x"), b"x"),
        (b"HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", b"ok"),
        (respond(200, gzip.compress(b"packed", mtime=0), "Content-Encoding: gzip"), b"packed"),
        (respond(200, zlib.compress(b"packed"), "Content-Encoding: deflate"), b"packed"),
    ],
)
async def test_body_is_read_as_it_is_framed(answer: bytes, body: bytes) -> None:
    async with serving(answer) as service:
        assert (await call(make_caller(), service.url))[1] == body


async def test_answer_to_head_has_no_body_whatever_its_length_says() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") as service:
        assert await call(make_caller(), service.url, "HEAD") == (200, b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n Folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 102 Wait\r\n\r\n" * 100,
        respond(200, gzip.compress(b"packed", mtime=0)[:-4], "Content-Encoding: gzip"),
        respond(200, b"no gzip", "Content-Encoding: gzip"),
        respond(200, b"?", "Content-Encoding: br"),
    ],
)
async def test_answer_that_is_no_http_fails_and_may_be_tried_again(answer: bytes) -> None:
    async with serving(answer) as service:
        failure = await fail(make_caller(), service.url)

    assert (failure.type, failure.non_retryable) == ("HttpConnectionFailed", False)


async def test_service_that_is_not_there_fails_and_may_be_tried_again() -> None:
    async with serving() as service:
        url = service.url

    failure = await fail(make_caller(), url)

    assert (failure.type, failure.non_retryable) == ("HttpConnectionFailed", False)


# --- limits ---


async def write_without_end(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2_000,
        respond(200, gzip.compress(gzip.compress(b"\x00" * 50_000_000)), "Content-Encoding: gzip"),
        respond(200, gzip.compress(b"\x00" * 900_000), "Content-Encoding: gzip"),
        write_without_end,
    ],
    ids=["announced", "without length", "bomb in a bomb", "bomb", "without end"],
)
async def test_huge_body_is_given_up_at_the_limit(answer: Answer) -> None:
    async with serving(answer) as service:
        failure = await fail(make_caller(limits=HttpLimits(response_bytes=1_000)), service.url)

    assert (failure.type, failure.non_retryable) == ("HttpResponseTooLarge", True)


async def test_body_of_exactly_the_limit_is_read() -> None:
    async with serving(respond(200, b"x" * 1_000)) as service:
        assert await call(make_caller(limits=HttpLimits(response_bytes=1_000)), service.url) == (200, b"x" * 1_000)


async def test_service_that_does_not_answer_times_out() -> None:
    async with serving(hang) as service:
        failure = await fail(make_caller(limits=SHORT), service.url)

    assert (failure.type, failure.non_retryable) == ("HttpTimedOut", False)
    assert "reading" in str(failure)


async def test_body_that_stops_halfway_times_out() -> None:
    async def stop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await hang(reader, writer)

    async with serving(stop) as service:
        failure = await fail(make_caller(limits=SHORT), service.url)

    assert failure.type == "HttpTimedOut"


async def test_body_that_drips_is_ended_by_the_total_timeout() -> None:
    limits = HttpLimits(read_seconds=5, total_seconds=0.1, response_bytes=10**9)
    async with serving(drip) as service:
        failure = await fail(make_caller(limits=limits), service.url)

        assert failure.type == "HttpTimedOut"
        assert "whole call" in str(failure)
        await asyncio.wait_for(service.is_left.wait(), 10)


async def test_name_that_never_resolves_times_out_as_connecting() -> None:
    async def resolve(_host: str, _port: int) -> Any:
        await asyncio.Event().wait()

    caller = make_caller(limits=HttpLimits(connect_seconds=0.05), resolve=resolve)

    failure = await fail(caller, "http://a.example")

    assert failure.type == "HttpTimedOut"
    assert "connecting" in str(failure)


async def test_cancelled_call_closes_its_connection_at_once() -> None:
    began = asyncio.Event()

    async with serving(drip) as service:
        request = make_request(HttpInputs(service.url), {})
        limits = HttpLimits(response_bytes=10**9)
        task = asyncio.create_task(make_caller().call(request, limits, began.set))
        await began.wait()
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(service.is_left.wait(), 10)


# --- addresses and names ---


async def test_private_address_is_refused_before_anything_is_sent() -> None:
    async with serving(respond()) as service:
        failure = await fail(make_caller(private=()), service.url)

    assert (failure.type, failure.non_retryable) == ("HttpRefused", True)
    assert "loopback" in str(failure)
    assert service.requests == []


async def test_name_with_one_private_address_among_public_ones_is_refused() -> None:
    failure = await fail(make_caller(private=(), answers=[["8.8.8.8", "169.254.169.254"]]), "http://a.example")

    assert failure.type == "HttpRefused"
    assert "169.254.169.254" in str(failure)


async def test_name_that_is_rebound_after_the_check_is_not_asked_for_again() -> None:
    async with serving(respond(200, b"checked")) as service:
        caller = make_caller(answers=[["127.0.0.1"], ["169.254.169.254"]])

        assert await call(caller, f"http://a.example:{service.port}/") == (200, b"checked")
        assert f"Host: a.example:{service.port}\r\n".encode() in service.requests[0]


async def test_name_is_checked_anew_at_each_redirect() -> None:
    async with serving(redirect("/again")) as service:
        caller = make_caller(answers=[["127.0.0.1"], ["10.0.0.1"]])

        failure = await fail(caller, f"http://a.example:{service.port}/")

    assert failure.type == "HttpRefused"
    assert "10.0.0.1" in str(failure)


async def test_host_beside_the_allow_list_is_refused_without_a_question_to_dns() -> None:
    failure = await fail(make_caller("api.example.com", answers=[]), "https://other.example.com")

    assert failure.type == "HttpRefused"
    assert "allow-list" in str(failure)


# --- redirects ---


async def test_redirect_is_followed_and_bounded() -> None:
    async with serving(redirect("/b"), redirect("/c"), respond(200, b"end")) as service:
        assert await call(make_caller(limits=HttpLimits(redirects=2)), service.url) == (200, b"end")

    async with serving(*[redirect("/on")] * 4) as service:
        failure = await fail(make_caller(limits=HttpLimits(redirects=2)), service.url)
        assert failure.type == "HttpRefused"
        assert len(service.requests) == 3


async def test_redirect_is_given_back_if_none_is_to_be_followed() -> None:
    async with serving(redirect("/b")) as service:
        assert (await call(make_caller(limits=HttpLimits(redirects=0)), service.url))[0] == 302


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://10.0.0.1/", "http://[::ffff:a9fe:a9fe]/",
     "file:///etc/passwd", "//user@127.0.0.1/", "http://127.1/"],
)  # fmt: skip
async def test_redirect_to_a_private_address_is_refused(location: str) -> None:
    async with serving(redirect(location)) as service:
        failure = await fail(make_caller(), service.url)

    assert (failure.type, failure.non_retryable) == ("HttpRefused", True)


async def test_redirect_to_a_host_beside_the_allow_list_is_refused() -> None:
    async with serving(redirect("http://other.example/")) as service:
        failure = await fail(make_caller(f"127.0.0.1:{service.port}"), service.url)

    assert "allow-list" in str(failure)


@pytest.mark.parametrize(
    ("status", "method", "second"),
    [
        (301, "POST", b"GET"),
        (302, "POST", b"GET"),
        (303, "PUT", b"GET"),
        (303, "HEAD", b"HEAD"),
        (302, "PUT", b"PUT"),
        (307, "POST", b"POST"),
        (308, "POST", b"POST"),
    ],
)
async def test_redirect_keeps_or_changes_the_method_as_browsers_do(status: int, method: str, second: bytes) -> None:
    async with serving(redirect("/b", status), respond()) as service:
        await call(make_caller(), service.url, method, body={"a": 1})

    assert service.requests[1].split(b" ")[0] == second
    assert service.requests[1].endswith(b'{"a":1}' if second == method.encode() else b"\r\n\r\n")


async def test_credentials_do_not_follow_a_redirect_to_another_origin() -> None:
    async with serving(respond()) as other, serving(redirect(f"{other.url}/b"), respond()) as service:
        inputs: dict[str, Any] = {
            "headers": {"X-Api-Key": "k1", "Cookie": "c=1", "Accept": "text/plain"},
            "authentication": {"type": "bearer", "token": "t1"},
        }
        await call(make_caller(), service.url, **inputs)

    assert b"k1" in service.requests[0]
    assert b"Bearer t1" in service.requests[0]
    assert b"k1" not in other.requests[0]
    assert b"c=1" not in other.requests[0]
    assert b"t1" not in other.requests[0]
    assert b"Accept: text/plain" in other.requests[0]


# --- TLS ---


def make_service_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "service.pem")
    return context


def make_trusting_tls() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(CERTIFICATES / "authority.pem"))


async def test_certificate_is_checked_for_the_name_that_was_called() -> None:
    async with serving(respond(200, b"safe"), respond(), tls=make_service_tls()) as service:
        caller = make_caller(answers=[["127.0.0.1"]] * 2, tls=make_trusting_tls())

        assert await call(caller, f"https://service.example:{service.port}/") == (200, b"safe")
        failure = await fail(caller, f"https://other.example:{service.port}/")

    assert failure.non_retryable
    assert "certificate" in str(failure)


async def test_certificate_of_an_unknown_authority_is_refused() -> None:
    async with serving(respond(), tls=make_service_tls()) as service:
        failure = await fail(make_caller(answers=[["127.0.0.1"]]), f"https://service.example:{service.port}/")

    assert failure.non_retryable
    assert service.requests == []


async def test_redirect_from_https_to_http_is_refused() -> None:
    async with serving(redirect("http://8.8.8.8/"), tls=make_service_tls()) as service:
        caller = make_caller(answers=[["127.0.0.1"]], tls=make_trusting_tls())
        failure = await fail(caller, f"https://service.example:{service.port}/")

    assert failure.type == "HttpRefused"
    assert "https" in str(failure)
