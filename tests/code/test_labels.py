"""R5: names that people give to calls, timers and children are recorded and shown, and never compared."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, activity, transaction, workflow
from holdfast.cli.tables import describe_event
from holdfast.core import codec, events
from holdfast.core.instants import to_datetime
from tests.code.playing import BEGIN, Play


@activity
async def charge(amount: int) -> int:
    return amount


@transaction
def book(connection: Any) -> None:
    """Books nothing."""


@workflow
async def child(ctx: Context) -> None:
    """Ends at once."""


def make_order(prefix: str) -> Any:
    """A workflow that names whatever can have a name."""

    @workflow(name="order")
    async def order(ctx: Context) -> None:
        def name(text: str) -> str:
            return f"{prefix}{text}" if prefix else ""

        asked: list[Any] = [
            ctx.run(charge.with_options(name=name("deposit")), 1),
            ctx.transaction(book.with_options(name=name("book it"))),
            ctx.start_child(child, name=name("notify")),
            ctx.run_child(child, name=name("bill")),
            ctx.sleep_until(to_datetime(BEGIN + 10**9), name=name("the deadline")),
        ]
        assert asked
        waiting = ctx.wait_any(ctx.timer(50, name=name("patience")))
        await ctx.sleep(10, name=name("cooling off"))
        await waiting

    return order


LABELLED = (events.ActivityScheduled, events.ChildStarted, events.TimerStarted)


def test_R5_names_of_calls_timers_and_children_are_in_the_history() -> None:
    played = Play(make_order("my "))

    labels = [one.label for one in played.events if isinstance(one, LABELLED)]

    assert labels == ["my deposit", "my book it", "my notify", "my bill", "my the deadline", "my patience", "my cooling off"]
    assert 'label="my deposit"' in describe_event(codec.export_history(played.history)[1])


@pytest.mark.parametrize("other", ["your ", ""])
def test_R5_changed_names_fit_the_history(other: str) -> None:
    played = Play(make_order("my "))
    played.complete(1, 1)

    assert played.replay(make_order(other)) is None


def test_event_without_a_name_is_written_as_before() -> None:
    played = Play(make_order(""))

    assert b"label" not in codec.encode([event for turn in played.history for event in turn.events])
