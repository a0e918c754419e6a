"""R3: what an activity or a child raised is caught by its own class, on the first run and on every replay."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import ActivityFailed, ChildWorkflowFailed, Context, SideEffectFailed, activity, workflow
from holdfast.core import envelopes, events
from holdfast.core.behaviours import PRESENT, TYPED_FAILURES
from holdfast.core.events import HistoryTurn
from holdfast.core.failures import describe_exception
from holdfast.errors import InvalidDefinition
from tests.code.playing import EXECUTION_ID, Play, replay


class CardDeclined(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"declined: {code}")
        self.code = code


def make_hidden() -> type[Exception]:
    class Hidden(Exception):
        pass

    return Hidden


hidden = make_hidden()


@activity
async def charge(amount: int) -> int:
    return amount


@activity(errors=[hidden])
async def charge_by_card(amount: int) -> int:
    return amount


@activity
async def alarm() -> None: ...


@workflow
async def child(ctx: Context) -> None:
    await ctx.run(charge, 1)


@workflow
async def order(ctx: Context, which: str) -> list[str]:
    """Takes another path for each class, so that a replay that catches otherwise disagrees with the history."""
    chosen: Any = {"plain": charge, "registered": charge_by_card, "by name": "charge"}[which]
    try:
        await ctx.run(chosen, 1)
    except CardDeclined as error:
        await ctx.sleep(1)
        return ["declined", error.message, error.type] if isinstance(error, ActivityFailed) else ["?"]
    except hidden:
        await ctx.sleep(1)
        return ["hidden"]
    except LookupError as error:
        await ctx.sleep(1)
        return ["lookup", str(error)]
    except ActivityFailed as error:
        await ctx.run(alarm)
        return ["failed", error.type]
    return []


def forget_behaviours(history: list[HistoryTurn]) -> list[HistoryTurn]:
    """The same history, as it was recorded before exceptions had the class of the original."""
    started = history[0].events[0]
    assert isinstance(started, events.WorkflowStarted)
    old = msgspec.structs.replace(started, behaviours=tuple(sorted(set(PRESENT) - {TYPED_FAILURES})))
    first = HistoryTurn(history[0].first, history[0].at, (old, *history[0].events[1:]))
    return [first, *history[1:]]


@pytest.mark.parametrize(
    ("which", "error", "result"),
    [
        ("plain", CardDeclined(5), ["declined", "declined: 5", "CardDeclined"]),
        ("by name", CardDeclined(5), ["declined", "declined: 5", "CardDeclined"]),
        ("registered", hidden("h"), ["hidden"]),
        ("plain", KeyError("k"), ["lookup", "Expected activity 'charge' to succeed, but it raised KeyError: 'k'"]),
    ],
)
def test_R3_own_class_is_caught_at_first_and_on_replay(which: str, error: Exception, result: list[str]) -> None:
    play = Play(order, which)
    play.fail(1, error)
    assert play.kinds[-1] == "TimerStarted"
    assert play.replay() is None

    play.fire()

    assert play.result == result
    assert play.replay() is None


def test_R3_class_that_is_not_known_is_told_by_its_type() -> None:
    play = Play(order, "plain")
    play.fail(1, hidden("h"))
    play.complete(2)

    assert play.result == ["failed", "Hidden"]
    assert play.replay() is None


def test_R3_older_executions_keep_the_exceptions_that_they_had() -> None:
    caught: list[BaseException] = []

    @workflow
    async def old(ctx: Context) -> str:
        try:
            await ctx.run(charge, 1)
        except ActivityFailed as error:
            caught.append(error)
            await ctx.sleep(1)
        return "done"

    play = Play(old)
    play.fail(1, CardDeclined(5))
    history = forget_behaviours(play.history)
    assert replay(old, history, EXECUTION_ID) is None

    new, before = caught
    assert isinstance(new, CardDeclined)
    assert type(before) is ActivityFailed
    assert before.__cause__ is None
    assert before.message == str(before) == str(new)


def test_R3_code_that_was_written_for_another_class_blocks_on_replay() -> None:
    play = Play(order, "plain")
    play.fail(1, CardDeclined(5))
    play.fire()

    refused = replay(order, forget_behaviours(play.history), EXECUTION_ID)

    assert refused is not None
    assert refused.type == "NonDeterminismError"


def test_child_that_let_a_failure_through_is_caught_by_the_original_class() -> None:
    @workflow
    async def parent(ctx: Context) -> list[str]:
        try:
            await ctx.run_child(child)
        except CardDeclined as error:
            chain = [error.type] if isinstance(error, ChildWorkflowFailed) else ["?"]
            cause = error.__cause__
            while cause is not None:
                chain.append(type(cause).__name__)
                cause = cause.__cause__
            return chain
        return []

    inner = Play(child)
    inner.fail(1, CardDeclined(5))
    play = Play(parent)
    play.tell(envelopes.ChildClosed(number=1, execution_id=play.execution.children[1].execution_id, failure=inner.failure))

    assert play.result == ["ActivityFailed", "ActivityFailed", "CardDeclined"]
    assert play.replay() is None


def test_side_effect_that_raised_is_caught_by_its_class() -> None:
    def fail() -> None:
        raise CardDeclined(5)

    @workflow
    async def order(ctx: Context) -> str:
        try:
            ctx.side_effect(fail)
        except CardDeclined as error:
            return error.message if isinstance(error, SideEffectFailed) else "?"
        return "?"

    play = Play(order)

    assert play.result == "declined: 5"
    assert play.replay() is None


def test_errors_that_are_no_classes_are_refused() -> None:
    for wrong in ([KeyError("k")], ["CardDeclined"], [int], [SystemExit], 5):
        with pytest.raises(InvalidDefinition, match=r"^Expected errors=\[…\] of activity 'charge'"):
            activity(name="charge", errors=wrong)(make_hidden)  # type: ignore[arg-type]


def test_failure_of_the_workflow_keeps_the_chain() -> None:
    play = Play(child)
    play.fail(1, CardDeclined(5))

    failure = play.failure
    assert (failure.type, failure.cause and failure.cause.type) == ("ActivityFailed", "CardDeclined")
    assert describe_exception(CardDeclined(5)).cause is None
