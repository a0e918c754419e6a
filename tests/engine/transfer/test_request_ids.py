"""A call that is repeated with its request id, where its execution was imported, is not done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest

from holdfast import Context, Engine, event, workflow
from tests.eventually import eventually


@event
@dataclass
class Paid:
    by: str


@workflow
async def relay(ctx: Context, got: list[str]) -> list[str]:
    """Collects what it is given by a signal, an event or an update, and hands it on to its next run when it is told to."""

    @ctx.on_update
    def give(what: str) -> str:
        got.append(what)
        return f"{what} is number {len(got)}"

    while True:
        winner = await ctx.wait_any(ctx.signal("give", str), ctx.event(Paid), ctx.signal("next", str))
        if winner.index < 2:
            got.append(winner.value if isinstance(winner.value, str) else winner.value.by)
        elif winner.value == "end":
            return got
        else:
            ctx.continue_as(got)


Call: TypeAlias = Callable[[Engine], Awaitable[Any]]
CALLS: Final[Mapping[str, Call]] = {
    "signal": lambda engine: engine.signal_workflow("relay", "give", "it", request_id="r"),
    "signal_with_start": lambda engine: engine.signal_with_start_workflow(
        "relay", relay, [], signal_name="give", signal_value="it", request_id="r"
    ),
    "update": lambda engine: engine.update("relay", "give", "it", request_id="r"),
    "update_with_start": lambda engine: engine.update_with_start(
        "relay", relay, [], update_name="give", update_value="it", request_id="r"
    ),
    "send_event_to": lambda engine: engine.send_event_to("relay", Paid("it"), request_id="r"),
}


def make_engine(url: str) -> Engine:
    return Engine(url, workflows=[relay], events=[Paid])


async def hand_on(engine: Engine) -> list[bytes]:
    """Have the next run begin, and export that one alone."""
    before = (await engine.query_status("relay")).execution_id
    await engine.signal_workflow("relay", "next", "run")

    async def has_next() -> bool:
        return (await engine.query_status("relay")).execution_id != before

    await eventually(has_next, "the next run")
    return [line async for line in engine.export_executions("relay")]


@pytest.mark.parametrize("kind", CALLS)
async def test_S7_a_call_that_the_run_before_answered_is_known_after_an_import(urls: tuple[str, str], kind: str) -> None:
    async with make_engine(urls[0]) as source:
        await source.start(relay, [], workflow_id="relay")
        answer = await CALLS[kind](source)
        lines = await hand_on(source)

    async with make_engine(urls[1]) as target:
        await target.import_executions(lines)
        again = await CALLS[kind](target)
        await target.signal_workflow("relay", "next", "end")

        assert await target.handle("relay").result() == ["it"]
        assert again == answer or kind == "signal_with_start"  # whose answer names the run that is there


async def test_I2_the_key_of_a_start_stands_for_the_run_that_was_imported(urls: tuple[str, str]) -> None:
    async with make_engine(urls[0]) as source:
        await source.start(relay, ["it"], workflow_id="relay", idempotency_key="k")
        lines = await hand_on(source)

    async with make_engine(urls[1]) as target:
        await target.import_executions(lines)
        again = await target.start(relay, [], idempotency_key="k")
        await target.signal_workflow("relay", "next", "end")

        assert await again.result() == ["it"]
        assert len(await target.list()) == 1
