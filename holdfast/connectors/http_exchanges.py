"""One call: a request, the redirects that it is led through, and the response at their end.

Each request of a call goes by the same rules: its host must be on the allow-list, its addresses must be permitted, and the
time of all of them together is bounded. A redirect never leads from https to http.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.connectors.allow_lists import AllowList
from holdfast.connectors.connecting import Connector, make_connection_failure
from holdfast.connectors.http_failures import TIMED_OUT, CallFailed, make_refusal
from holdfast.connectors.http_reading import HttpResponse, ResponseReader
from holdfast.connectors.http_requests import HttpRequest
from holdfast.connectors.urls import Url, UrlRefused

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one call may take at most: seconds, bytes and redirects."""

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    total_seconds: float = 60.0
    response_bytes: int = 1024 * 1024
    redirects: int = 5


def do_nothing() -> None:
    """Stands for `on_read` of calls that nobody watches."""


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """Makes calls within an allow-list, a guard of addresses and limits."""

    allow: AllowList
    connector: Connector
    limits: HttpLimits = HttpLimits()

    async def call(
        self, request: HttpRequest, limits: HttpLimits | None = None, on_read: Callable[[], None] = do_nothing
    ) -> HttpResponse:
        """The response to a request. Raises CallFailed; if it is cancelled, its connection is closed at once.

        `on_read` is called each time that something has arrived.
        """
        limits = limits or self.limits
        try:
            async with asyncio.timeout(limits.total_seconds):
                return await self._follow(request, limits, on_read)
        except TimeoutError:
            raise _make_timeout(request.url, "the whole call", limits.total_seconds) from None

    async def _follow(self, request: HttpRequest, limits: HttpLimits, on_read: Callable[[], None]) -> HttpResponse:
        left = limits.redirects
        while True:
            response = await self._exchange(request, limits, on_read)
            location = response.find("location") if _is_followed(response, limits) else None
            if location is None:
                return response
            if left == 0:
                raise make_refusal(
                    f"{request.url.without_query()} to be the last of at most {limits.redirects} redirects",
                    "it leads further",
                    "Call the address behind them, or raise max_redirects.",
                )
            left -= 1
            request = self._redirect(request, response.status, location)

    def _redirect(self, request: HttpRequest, status: int, location: str) -> HttpRequest:
        try:
            url = request.url.join(location)
        except UrlRefused as error:
            raise make_refusal(
                f"{request.url.without_query()} to redirect to a URL that can be called", str(error), "Ask its owner."
            ) from None
        if (request.url.origin.scheme, url.origin.scheme) == ("https", "http"):
            raise make_refusal(
                f"{request.url.without_query()} to redirect to https", f"it leads to {url.origin}", "Ask its owner."
            )
        return request.redirect(status, url)

    async def _exchange(self, request: HttpRequest, limits: HttpLimits, on_read: Callable[[], None]) -> HttpResponse:
        origin = request.url.origin
        if not self.allow.permits(origin):
            raise make_refusal(
                f"{origin} to be on the allow-list",
                "it is not",
                "If it is to be called, add it to http_activity(allow=[…]).",
            )
        try:
            async with asyncio.timeout(limits.connect_seconds):
                reader, writer = await self.connector.connect(origin)
        except TimeoutError:
            raise _make_timeout(request.url, "connecting", limits.connect_seconds) from None
        try:
            await _send(writer, request, limits.read_seconds)
            responses = ResponseReader(reader, limits.response_bytes, limits.read_seconds, on_read)
            head = await responses.read_head()
            return head if _is_followed(head, limits) else await responses.read_body(head, request.method)
        except TimeoutError:
            raise _make_timeout(request.url, "reading", limits.read_seconds) from None
        except OSError as error:
            raise make_connection_failure(origin, error) from error
        finally:
            writer.transport.abort()  # at once: a farewell of TLS could take as long as the service likes


def _is_followed(response: HttpResponse, limits: HttpLimits) -> bool:
    return limits.redirects > 0 and response.status in REDIRECTS and response.find("location") is not None


async def _send(writer: asyncio.StreamWriter, request: HttpRequest, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            writer.write(request.encode_head())
            if request.body:
                writer.write(request.body)
            await writer.drain()
    except ConnectionError:
        pass  # it may have answered before it read everything, and closed: the answer says why


def _make_timeout(url: Url, what: str, seconds: float) -> CallFailed:
    return CallFailed(
        f"Expected {what} to take at most {seconds:g} s, but it took longer ({url.without_query()}). "
        "Look at the service, or raise the timeouts of http_activity(…).",
        TIMED_OUT,
    )
