"""A call from a thread into a loop always ends, also if the loop ends first."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.engine.loop_calls import call_in_loop
from holdfast.errors import EngineClosed
from tests.eventually import eventually_blocking


async def answer() -> int:
    return 42


def test_a_call_that_a_loop_does_not_see_before_it_ends_is_told_so() -> None:
    loop = asyncio.new_event_loop()  # one that was stopped, and is not closed yet: it takes calls and never runs them
    told: list[str] = []

    def call() -> None:
        try:
            call_in_loop(loop, answer())
        except EngineClosed as error:
            told.append(str(error))

    threading.Thread(target=call, daemon=True).start()
    eventually_blocking(lambda: bool(loop._ready))  # type: ignore[attr-defined]

    loop.close()

    eventually_blocking(lambda: bool(told))
    assert "it has ended" in told[0]


def test_a_call_into_a_loop_that_has_ended_is_told_so() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    with pytest.raises(EngineClosed, match="it has ended"):
        call_in_loop(loop, answer())
