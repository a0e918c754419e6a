"""Calls that are answered with what comes of them, after that is durable: updates, and whatever else has a reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from holdfast.core import payloads
from holdfast.core.envelopes import AnyAnswered, Update
from holdfast.core.ids import check_identifier
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.core.replies import Replied
from holdfast.core.request_keys import MADE_UP, RequestKey
from holdfast.core.start_checks import check_texts
from holdfast.engine.replies import ReplyWaiters
from holdfast.engine.requests import Answer, ReplyFollows, Request
from holdfast.engine.turns.claims import key_id_of
from holdfast.engine.use_cases.delivery import Delivery, PreparedStart
from holdfast.engine.wait_time import WaitTime
from holdfast.errors import AnswerTimedOut, HoldfastError


class AnsweredCalls:
    """Delivers envelopes of `core.envelopes.ANSWERED` and waits for their replies, whichever node decides on those."""

    def __init__(self, delivery: Delivery, replies: ReplyWaiters, time: WaitTime) -> None:
        self._delivery = delivery
        self._replies = replies
        self._time = time

    def make_update(self, name: str, value: Any, key: RequestKey, headers: Mapping[str, str] | None = None) -> Update:
        """An update with its name and headers checked and its value encoded. Raises InvalidIdentifier or EncodingError."""
        check_identifier(name, "the name of an update")
        limit = self._delivery.payload_limit
        encoded = payloads.encode(value, f"the value of update '{name}'", limit)
        return Update(name=name, value=encoded, headers=check_texts(headers, "headers", limit), request=key)

    async def reach(self, org: str, target: str, envelope: AnyAnswered, timeout: Duration | None = None) -> Replied:
        """Deliver an envelope to an open execution and wait for what comes of it.

        Raises what refuses it. After `timeout` it raises AnswerTimedOut: the envelope may still be handled.
        """
        key = envelope.request
        own_key = None if key.kind == MADE_UP else key
        return await self._wait(org, envelope, lambda: self._delivery.reach(org, target, envelope, own_key), timeout)

    async def start(self, org: str, prepared: PreparedStart, update: Update, timeout: Duration | None = None) -> Replied:
        """Update the execution that is open under a workflow id, or one that is started, as one step."""
        start, key = prepared.start, update.request
        request = Request(org, start, workflow_id=start.workflow_id, signal=update)
        request.key = None if key.kind == MADE_UP else key
        send = partial(self._delivery.open_limits.send, request)
        return await self._wait(org, update, send, timeout)

    async def _wait(
        self, org: str, envelope: AnyAnswered, send: Callable[[], Awaitable[Answer]], timeout: Duration | None
    ) -> Replied:
        key = envelope.request
        seconds = None if timeout is None else to_micros(timeout, "the timeout") / SECOND
        key_id = key_id_of(org, key)
        future = self._replies.wait(key_id)
        try:
            async with self._time.limit(seconds):
                answer = await send()
                if type(answer) is ReplyFollows:
                    if key.kind != MADE_UP:
                        await self._replies.look()  # it may have been answered before this call waited
                    answer = await self._time.wait(future)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise _make_late(envelope, seconds or 0) from None
        finally:
            self._replies.forget(key_id, future)
        if not isinstance(answer, Replied):
            raise TypeError(f"expected a reply for an answer, but got {answer!r}")
        return answer


def _make_late(envelope: AnyAnswered, seconds: float) -> AnswerTimedOut:
    """The error of a call whose answer did not come in time, with how to learn what became of it."""
    if isinstance(envelope, Update):
        what, where = f"update '{envelope.name}'", "look at the history of the execution"
    else:
        what, where = f"a step of task {envelope.task_id}", "look at the task"
    if envelope.request.kind == MADE_UP:
        remedy = f"{where} before you call again. A call that has a request_id can be repeated, and gets the same answer."
    else:
        remedy = "call again with the same request_id, which joins it."
    return AnswerTimedOut(
        f"Expected {what} to be answered within {seconds:g} seconds, but it was not. It may still be: {remedy}"
    )
