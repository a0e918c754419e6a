"""What must hold of a process whenever it rests, whatever happened before.

What its instances wait for is what is open in its execution, and nothing else; everything that is active can go on. A
program that is rebuilt from the history, or from a snapshot, is in the same state, down to the order of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.bpmn.state import ROOT, WORKING, Instance, State, encode_state, weigh
from holdfast.core import events
from holdfast.core.publications import SubscriptionKind

if TYPE_CHECKING:
    from holdfast.bpmn.program import ProcessProgram
    from tests.bpmn.support.playing import PlayedExecution

_KINDS: Final = {SubscriptionKind.MESSAGE: "message", SubscriptionKind.BROADCAST: "broadcast"}


def check_rest(play: PlayedExecution) -> None:
    """Compare what is awaited with what is open, and the program with one that is rebuilt."""
    check_open(play)
    if not play.execution.is_closed:
        check_rebuilt(play)


def check_open(play: PlayedExecution) -> None:
    """Compare what is awaited with what is open, and look for instances that nothing can ever move."""
    state, execution = play.program.state, play.execution
    waits = {number: wait.kind for number, (_, wait) in state.waits.items()}
    opened = list_open(play)
    if execution.is_closed:
        assert not state.active, f"the execution is closed, but active are {list(state.active)}"
        assert not waits
        assert not opened
        return
    assert waits == opened, f"the instances wait for {waits}, but open are {opened}: {play.waits}"
    assert state.incidents.keys() == execution.incidents.keys()
    _check_indexes(state)
    if state.kept:
        assert state.yielding in execution.timers, "tokens are kept, but nothing wakes the process"
    for one in state.active.values():
        _check_instance(play, one)


def check_rebuilt(play: PlayedExecution) -> None:
    """Compare the program with one that takes the whole history, and one that takes a snapshot."""
    expected = show_state(play.program)
    replayed = play.make_program()
    assert replayed.apply(play.history) is None
    assert show_state(replayed) == expected
    restored = play.make_program()
    snapshot = play.program.take_snapshot()
    assert snapshot is not None
    assert restored.restore_snapshot(snapshot, play.program.snapshot_schema)
    assert show_state(restored) == expected


def list_open(play: PlayedExecution) -> dict[int, str]:
    """By number, the kind of everything that is open and that nobody has told to end; the timer of a yield aside."""
    execution = play.execution
    told = {one.number for one in play.events if isinstance(one, events.ChildCancelRequested)} if execution.children else ()
    found = {number: "activity" for number, one in execution.activities.items() if not one.is_cancelling}
    found |= {number: "timer" for number in execution.timers if number != play.program.state.yielding}
    found |= {number: "child" for number in execution.children if number not in told}
    found |= dict.fromkeys(execution.tasks, "task")
    return found | {number: _KINDS[one.kind] for number, one in execution.subscriptions.items()}


def show_state(program: ProcessProgram) -> object:
    """The state as JSON values, with everything in its order."""
    found = msgspec.json.decode(encode_state(program.state))
    return found, program.state.bytes


def _check_indexes(state: State) -> None:
    """What the state keeps to find things fast agrees with what it is made of."""
    size = sum(weigh(one) for one in state.active.values())
    size += sum(len(value.data) for values in state.signals.values() for value in values)
    assert state.bytes == size
    assert state.incidents == {number: one.key for one in state.active.values() for number in one.incidents}
    named: dict[str, list[int]] = {}
    for number, (key, wait) in state.waits.items():
        assert number in state.active[key].waits
        if wait.name:
            named.setdefault(wait.name, []).append(number)
    assert {name: list(numbers) for name, numbers in state.named.items()} == named
    assert sum(len(one.waits) for one in state.active.values()) == len(state.waits)
    children = {(one.scope, one.key) for one in state.active.values() if one.key != ROOT}
    assert children == {(one.key, key) for one in state.active.values() for key in one.children}


def _check_instance(play: PlayedExecution, one: Instance) -> None:
    """It can go on: it waits, or something inside does, or a token is on its way, or people must correct something."""
    state = play.program.state
    if one.phase != WORKING:
        assert one.incidents, f"'{one.element}' is {one.phase}, but has no incident"
        return
    has_tokens = any(scope == one.key for scope, _, _ in state.kept)
    is_container = one.key == ROOT or one.loop is not None or play.process.nodes[one.element].inner is not None
    if is_container:
        is_answered = one.key != ROOT or not state.unanswered
        assert one.children or one.joins or has_tokens or not is_answered, (
            f"'{one.element}' is active, but nothing is inside"
        )
        if one.joins and not one.children and not has_tokens:
            assert one.incidents or one.waits, f"tokens wait for ever at {one.joins}"
    else:
        assert one.waits or one.incidents or has_tokens, f"'{one.element}' is active, but waits for nothing"
