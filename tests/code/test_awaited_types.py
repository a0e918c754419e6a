"""V2: code that waits for something by a type that no value can be read as is told so at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Workflow, workflow
from holdfast.core import behaviours
from holdfast.errors import InvalidArguments
from tests.code.playing import Play, replay

Wait = Callable[[Context, Any], Any]


class Odd:
    def __init__(self, value: int) -> None:
        self.value = value


UNREADABLE: dict[str, Any] = {
    "a number": 42,
    "a name": "str",
    "a list": [int],
    "a dict": {"a": 1},
    "a function": lambda: 0,
    "a class without fields": Odd,
    "a list of such": list[Odd],
    "keys that are no texts": dict[tuple[int, int], str],
}
WAITS: dict[str, Wait] = {
    "signal": lambda ctx, hint: ctx.wait_for_signal("x", hint, timeout=1),
    "message": lambda ctx, hint: ctx.wait_for_message("x", "k", hint, timeout=1),
    "broadcast": lambda ctx, hint: ctx.wait_for_broadcast("x", hint, timeout=1),
    "any signal": lambda ctx, hint: ctx.wait_any(ctx.signal("x", hint), ctx.timer(1)),
    "any message": lambda ctx, hint: ctx.wait_any(ctx.message("x", "k", hint), ctx.timer(1)),
    "any broadcast": lambda ctx, hint: ctx.wait_any(ctx.broadcast("x", hint), ctx.timer(1)),
    "drained signals": lambda ctx, hint: ctx.drain_signals("x", hint),
    "human task": lambda ctx, hint: ctx.wait_any(ctx.human_task("x", hint), ctx.timer(1)),
}


def make_story(wait: Wait, hint: Any) -> Workflow[..., Any]:
    @workflow(name="story")
    async def story(ctx: Context) -> str:
        try:
            await wait(ctx, hint)
        except InvalidArguments as error:
            await ctx.sleep(1)
            return error.message
        except TimeoutError:
            return "in vain"
        return "waited"

    return story


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("how", WAITS)
def test_V2_a_wait_for_what_cannot_be_read_is_refused_where_it_is_made(how: str, what: str) -> None:
    story = make_story(WAITS[how], UNREADABLE[what])
    play = Play(story)

    assert [*play.execution.subscriptions, *play.execution.tasks] == []
    play.fire()

    assert "'x' to have a type that JSON can become, but" in play.result
    assert replay(story, play.history) is None


@pytest.mark.parametrize("how", WAITS)
def test_V2_executions_from_before_wait_in_vain_as_they_did(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    story = make_story(WAITS[how], 42)
    with monkeypatch.context() as before:
        before.setattr(behaviours, "PRESENT", tuple(one for one in behaviours.PRESENT if one != behaviours.CHECKED_WAITS))
        play = Play(story)

    if how != "drained signals":
        play.fire()

    assert play.result in ("in vain", "waited")
    assert replay(story, play.history) is None


def test_V2_signals_that_are_there_are_kept_from_a_wait_that_cannot_read_them() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        await ctx.sleep(1)
        loose: Any = 42
        for wait in (WAITS["signal"], WAITS["any signal"], WAITS["drained signals"]):
            with pytest.raises(InvalidArguments):
                await wait(ctx, loose)
        return list(ctx.drain_signals("x", int))

    play = Play(story)
    play.signal("x", 7)
    play.fire()

    assert (play.result, play.dead_letters) == ([7], [])
