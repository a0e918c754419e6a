"""Time that is virtual though the sockets are real."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextvars import copy_context

import pytest

from holdfast.core.instants import SECOND
from holdfast.simulation.loop import NODE, NothingScheduled
from holdfast.simulation.server_loop import ServerLoop

START = 1_900_000_000 * SECOND


@pytest.fixture
def loop() -> Iterator[ServerLoop]:
    loop = ServerLoop(START, 10_000)
    yield loop
    loop.close()


def test_time_jumps_while_nobody_waits_for_the_server(loop: ServerLoop) -> None:
    async def main() -> None:
        await loop.pause(30 * 24 * 3600 * SECOND)

    loop.run(main())

    assert loop.now == START + 30 * 24 * 3600 * SECOND


def test_time_stands_still_while_somebody_waits_for_the_server(loop: ServerLoop) -> None:
    rung: list[int] = []

    async def main() -> None:
        loop.call_at_instant(START + 1, rung.append, 1)
        with loop.asking("a"):
            await loop.run_in_executor(None, time.sleep, 0.01)  # as long as a statement takes

    loop.run(main())

    assert (loop.now, rung) == (START, [])


@pytest.mark.parametrize("fate", ["dead", "frozen"])
def test_time_does_not_wait_for_an_answer_to_a_node_that_cannot_take_it(loop: ServerLoop, fate: str) -> None:
    async def main() -> None:
        if fate == "dead":
            loop.kill("a")
        else:
            loop.freeze("a", START + 100 * SECOND)
        with loop.asking("a"):
            await loop.pause(SECOND)

    loop.run(main())

    assert loop.now == START + SECOND


def test_nothing_of_a_dead_node_runs_and_a_frozen_one_goes_on_in_order(loop: ServerLoop) -> None:
    ran: list[str] = []

    async def main() -> None:
        for node in ("dead", "frozen", "well"):
            context = copy_context()
            context.run(NODE.set, node)
            for number in range(3):
                loop.call_soon(ran.append, f"{node} {number}", context=context)
        loop.kill("dead")
        loop.freeze("frozen", START + SECOND)
        await loop.pause(2 * SECOND)

    loop.run(main())

    assert ran == [f"{node} {number}" for node in ("well", "frozen") for number in range(3)]


def test_loop_with_nothing_to_wait_for_says_so(loop: ServerLoop) -> None:
    async def main() -> None:
        await loop.create_future()

    with pytest.raises(NothingScheduled):
        loop.run(main())
