"""Queries and updates over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.client.encoded_starts import LARGEST
from holdfast.client.socket_calls import SocketCalls
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.payloads import Payload
from holdfast.engine.views import ExecutionInfo


class SocketHandlerVerbs(SocketCalls):
    """Takes queries and updates to the owner of a database."""

    async def query(
        self,
        target: str,
        name: str,
        *args: Any,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Ask a query handler of an execution; what it returns, read as `hint`."""
        inputs = payloads.encode([*args], f"the arguments of query '{name}'", LARGEST).data
        answer = await self._call("query", msgspec.Raw, [target, name], {"org": org, "timeout": timeout}, inputs)
        return read_answer(answer, hint, f"the answer to query '{name}'")

    async def update(
        self,
        target: str,
        name: str,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of an open execution; what it returns, read as `hint`."""
        named = {
            "value": payloads.encode(value, f"the value of update '{name}'", LARGEST).data,
            "org": org,
            "request_id": request_id,
            "headers": headers,
            "timeout": timeout,
        }
        answer = await self._call("update", msgspec.Raw, [target, name], named)
        return read_answer(answer, hint, f"the result of update '{name}'")

    async def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status of an execution as soon as its `state_version` is another than `seen`."""
        named = {"seen_pauses": seen_pauses, "org": org, "timeout": timeout}
        return await self._call("wait_for_change", ExecutionInfo, [target, seen], named)


def read_answer(answer: msgspec.Raw, hint: Any, what: str) -> Any:
    """A value that the owner sent, decoded as `hint`."""
    return payloads.decode(Payload(answer.copy()), hint, what)
