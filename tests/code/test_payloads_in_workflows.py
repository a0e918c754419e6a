"""Values in workflows: results are checked when the code ends; what can no longer be read blocks, and says why."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast import Context, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.code.program import CodeProgram
from holdfast.core import behaviours, commands, payloads
from holdfast.core.events import ActivityScheduled, HistoryTurn, WorkflowStarted
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.errors import EncodingError, InvalidArguments
from tests.code.playing import EXECUTION_ID, Play


@dataclass
class Point:
    x: int


@dataclass
class Place(Point):
    name: str = ""


@activity
async def find(point: Point) -> Any:
    return point


@workflow
async def mistaken(ctx: Context) -> int:
    await ctx.sleep(1)
    return "a"  # type: ignore[return-value]


@workflow
async def narrow(ctx: Context) -> str:
    try:
        await ctx.run(find, Place(1, "a"))
    except EncodingError as error:
        return error.message
    return "sent"


def forget_checks(play: Play) -> list[HistoryTurn]:
    """The history as an older Holdfast recorded it: before values were checked."""
    first = play.history[0]
    started = first.events[0]
    assert isinstance(started, WorkflowStarted)
    started = msgspec.structs.replace(started, behaviours=(behaviours.WORK_KEYS,))
    return [msgspec.structs.replace(first, events=[started, *first.events[1:]]), *play.history[1:]]


def test_V3_result_that_does_not_fit_fails_the_execution() -> None:
    play = Play(mistaken)
    play.fire()

    assert play.failure.type == "InvalidResult"
    assert play.failure.message.startswith(
        "Expected the result of workflow 'mistaken' to fit its return hint, int, but it does not: expected `int`, got `str`."
    )


def test_V3_execution_from_before_this_was_checked_completes_as_it_did() -> None:
    play = Play(mistaken)
    program = CodeProgram(mistaken, "default", EXECUTION_ID)
    assert program.apply(forget_checks(play)) is None

    play.program = program
    play.fire()

    assert play.result == "a"
    assert CodeProgram(mistaken, "default", EXECUTION_ID).apply(forget_checks(play)) is None


def test_V2_subclass_is_refused_in_workflows_that_began_since_and_taken_in_older_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "a Place would come back as a Point, and lose 'name'" in Play(narrow).result

    monkeypatch.setattr(behaviours, "PRESENT", (behaviours.WORK_KEYS,))
    old = Play(narrow)
    old.complete(1)

    assert old.result == "sent"
    assert CodeProgram(narrow, "default", EXECUTION_ID).apply(old.history) is None


# --- changed types ---


@dataclass
class Receipt:
    id: int


@dataclass
class NewReceipt:
    id: int
    total: int


def make_charging(receipt: Any, *, awaits_late: bool = False) -> Workflow[..., Any]:
    async def charge() -> Any: ...

    charge.__annotations__ = {"return": receipt}
    charge_activity = activity(charge)

    async def charging(ctx: Context) -> int:
        future = ctx.run(charge_activity)
        if awaits_late:
            await ctx.sleep(1)
        id_ = (await future).id
        await ctx.sleep(1)
        return int(id_)

    return workflow(charging)


def make_taking(receipt: Any) -> Workflow[..., Any]:
    async def taking(ctx: Context, first: Any) -> int:
        second = await ctx.wait_for_signal("receipt", receipt)
        await ctx.sleep(1)
        return int(first.id + second.id)

    taking.__annotations__["first"] = receipt
    return workflow(taking)


def test_V5_changed_type_blocks_with_the_decoding_error() -> None:
    play = Play(make_charging(Receipt))
    play.complete(1, Receipt(5))

    failure = CodeProgram(make_charging(NewReceipt), "default", EXECUTION_ID).apply(play.history)

    assert failure is not None
    assert failure.type == "NonDeterminismError"
    assert failure.message.startswith(
        "Expected the result of activity 'charge' to be NewReceipt, but object missing required field `total` in {\"id\":5}."
    )
    assert "the type was changed since" in failure.message


def test_V5_changed_type_blocks_also_where_the_value_is_awaited_later() -> None:
    play = Play(make_charging(Receipt, awaits_late=True))
    play.complete(1, Receipt(5))
    program = CodeProgram(make_charging(NewReceipt, awaits_late=True), "default", EXECUTION_ID)
    assert program.apply(play.history) is None

    play.program = program
    play.fire()

    assert play.blocked is not None
    assert play.blocked.message.startswith("Expected the result of activity 'charge' to be NewReceipt, but object missing")


def test_V5_changed_type_of_an_argument_or_signal_blocks_with_the_decoding_error() -> None:
    play = Play(make_taking(Receipt), Receipt(1))
    play.signal("receipt", Receipt(2))

    failure = CodeProgram(make_taking(NewReceipt), "default", EXECUTION_ID).apply(play.history)
    assert failure is not None
    assert failure.message.startswith("Expected parameter 'first' of workflow 'taking' to be NewReceipt, but object missing")

    later = make_taking(NewReceipt)
    later.signature = make_taking(Receipt).signature
    failure = CodeProgram(later, "default", EXECUTION_ID).apply(play.history)
    assert failure is not None
    assert failure.message.startswith("Expected the value of signal 'receipt' to be NewReceipt, but object missing")


def test_V5_value_that_could_not_be_read_then_either_replays_as_it_did() -> None:
    @activity
    async def number() -> int:
        return 1

    @workflow
    async def careful(ctx: Context) -> str:
        try:
            await ctx.run(number)
        except Exception:
            await ctx.sleep(1)
        return "done"

    play = Play(careful)
    play.complete(1, "no number")

    assert CodeProgram(careful, "default", EXECUTION_ID).apply(play.history) is None


# --- arguments ---


@workflow
async def shipping(ctx: Context, item: str, count: int = 1, *, to: str = "Ann") -> str:
    await asyncio.sleep(0)
    return f"{count} {item} to {to}"


def test_V4_workflow_takes_keyword_arguments_and_keyword_only_parameters() -> None:
    encoded = shipping.encode_input(["tea"], {"to": "Bob", "count": 2}, DEFAULT_LIMIT)

    assert bytes(encoded.data) == b'["tea",2,"Bob"]'
    assert Play(shipping, "tea").result == "1 tea to Ann"
    with pytest.raises(InvalidArguments, match="'colour' is no parameter"):
        shipping.encode_input(["tea"], {"colour": "red"}, DEFAULT_LIMIT)
    with pytest.raises(InvalidArguments, match="two were given"):
        shipping.encode_input(["tea"], {"item": "red"}, DEFAULT_LIMIT)


@workflow
async def calling(ctx: Context) -> str:
    return str(await ctx.run_child("shipping", "tea"))


def test_V4_workflow_called_by_name_fills_in_defaults() -> None:
    play = Play(calling)
    (command,) = [event for event in play.events if hasattr(event, "input") and event is not play.events[0]]
    program = CodeProgram(shipping, "default", EXECUTION_ID)
    started = msgspec.structs.replace(play.events[0], workflow="shipping", input=command.input)

    step = program.advance(started, 0)  # type: ignore[arg-type]

    (ended,) = step.commands
    assert isinstance(ended, commands.Complete)
    assert payloads.decode(ended.result, str, "the result") == "1 tea to Ann"


def test_V2_argument_of_an_activity_is_written_once() -> None:
    @workflow
    async def plain(ctx: Context) -> None:
        await ctx.run(find, Point(1))

    (scheduled,) = [event for event in Play(plain).events if isinstance(event, ActivityScheduled)]

    assert bytes(scheduled.input.data) == b'[{"x":1}]'
