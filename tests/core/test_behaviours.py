"""A change of meaning is recorded by executions that begin after it, and counts for those alone."""

from __future__ import annotations

import pytest

from holdfast import Context, workflow
from holdfast.code.program import CodeProgram
from holdfast.core import behaviours, codec, envelopes, events
from holdfast.core.events import HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.payloads import NULL
from holdfast.core.turn import fold, take_turn
from holdfast.errors import NewerFormat
from tests.code.playing import Play
from tests.core.test_turn import NOW, START, Script

CHANGED = "test-signals-twice"


@workflow(name="waits")
async def waits(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Holdfast in which a meaning has changed."""
    monkeypatch.setattr(behaviours, "PRESENT", (CHANGED,))


def begin() -> tuple[Execution, tuple[events.AnyEvent, ...]]:
    execution = Execution.register("default", START, NOW)
    return execution, tuple(take_turn(execution, Script(), [START], NOW).events)


def load(history: tuple[events.AnyEvent, ...]) -> Execution:
    """The execution as any node loads it later."""
    loaded = Execution.register("default", START, NOW)
    fold(loaded, [HistoryTurn(1, NOW, codec.decode_events(codec.encode(history), codec.SCHEMA))])
    return loaded


@pytest.mark.usefixtures("changed")
def test_execution_records_what_is_present_when_it_begins() -> None:
    execution, history = begin()

    assert execution.behaviours == {CHANGED}
    assert load(history).behaviours == {CHANGED}


@pytest.fixture
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Holdfast in which no meaning has changed yet."""
    monkeypatch.setattr(behaviours, "PRESENT", ())


@pytest.mark.usefixtures("unchanged")
def test_nothing_is_written_while_no_behaviour_is_present() -> None:
    _, history = begin()

    assert b"behaviours" not in codec.encode(history)


@pytest.mark.usefixtures("unchanged")
def test_old_history_keeps_the_old_meaning_under_new_code(monkeypatch: pytest.MonkeyPatch) -> None:
    _, history = begin()
    monkeypatch.setattr(behaviours, "PRESENT", (CHANGED,))

    assert load(history).behaviours == frozenset()


@pytest.mark.usefixtures("unchanged")
def test_program_is_told_what_was_recorded_not_what_is_present(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Play(waits).history
    monkeypatch.setattr(behaviours, "PRESENT", (CHANGED,))
    new = Play(waits).history

    for history, expected in ((old, frozenset[str]()), (new, frozenset({CHANGED}))):
        program = CodeProgram(waits, "default", "e")
        assert program.apply(history) is None
        assert program.behaviours == expected
        program.close()


@pytest.mark.usefixtures("changed")
def test_run_that_is_opened_by_the_one_before_it_records_anew() -> None:
    execution = Execution.register("default", START, NOW)

    turn = take_turn(execution, Script(), [envelopes.InternalContinue(start=START, runs=1)], NOW)

    assert turn.events[0] == events.WorkflowStarted(workflow="order", workflow_id="w", input=NULL, behaviours=(CHANGED,))


def test_behaviour_that_is_caught_up_with_is_not_lost() -> None:
    earlier, later = (Execution.register("default", START, NOW) for _ in range(2))
    earlier.behaviours = frozenset({CHANGED})

    later.take_open_from(earlier)

    assert later.behaviours == {CHANGED}


def test_behaviour_of_a_newer_holdfast_is_refused_by_name() -> None:
    with pytest.raises(NewerFormat, match=f"a newer Holdfast began it with '{CHANGED}'. Upgrade this node"):
        behaviours.check_known({CHANGED})


@pytest.mark.usefixtures("changed")
def test_known_behaviours_are_fine_and_so_are_none() -> None:
    behaviours.check_known({CHANGED})
    behaviours.check_known(())


def test_present_behaviours_are_sorted_and_unique() -> None:
    assert list(behaviours.PRESENT) == sorted(set(behaviours.PRESENT))
