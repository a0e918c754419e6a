"""Waits of instances for timers, messages and broadcast signals: preparing, arming and ending them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.mappings import evaluate_inputs
from holdfast.bpmn.model import TimerKind
from holdfast.bpmn.records import TimerWait, Wait
from holdfast.bpmn.state import SIGNAL
from holdfast.bpmn.values import show_value
from holdfast.core import commands
from holdfast.core.instants import LONGEST
from holdfast.core.publications import SubscriptionKind
from holdfast.core.times.specs import AfterDuration, AnySpec, AtDate, make_spec
from holdfast.errors import InvalidSchedule
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.values import TYPE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.bpmn.executable import Catch
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View
    from holdfast.core.instants import Instant


@dataclass(frozen=True, slots=True)
class Prepared:
    """A wait whose expressions were evaluated."""

    catch: Catch
    name: str = ""
    key: str = ""
    timer: TimerWait | None = None


def prepare(run: Run, catch: Catch, view: View, *, around: View | None = None, is_single: bool = False) -> Prepared:
    """Evaluate what an event waits for that has no instance of its own, with its input mappings. Raises Fault.

    `around` is what a boundary event itself sees: by that it finds its correlation key, as in Camunda 8, whatever the input
    mappings of its host hide. `is_single`: a cycle fires once, and then it is over.
    """
    around = view if around is None else around
    own = evaluate_inputs(run.evaluator, catch.node, view)
    return prepare_mapped(run, catch, view.within(own), around.within(own), is_single=is_single)


def prepare_mapped(run: Run, catch: Catch, view: View, around: View, *, is_single: bool = False) -> Prepared:
    """The same for an event whose input mappings are in the view already."""
    element = catch.node.id
    if catch.kind == "timer":
        return Prepared(catch, timer=_prepare_timer(run, catch, view, is_single=is_single))
    name = ""
    if catch.name is not None:
        name = run.evaluator.make_name(catch.name, view, f"the name of what '{element}' waits for", "message")
    if catch.kind == "broadcast":
        return Prepared(catch, name)
    if catch.key is None:
        return Prepared(catch, name, run.state.workflow_id)
    key = run.evaluator.make_name(catch.key, around, f"the correlation key of '{element}'", "message")
    return Prepared(catch, name, key)


def _prepare_timer(run: Run, catch: Catch, view: View, *, is_single: bool) -> TimerWait:
    what = f"the time of '{catch.node.id}'"
    spec = catch.spec
    if spec is None:
        if catch.when is None:
            raise Fault("timer", f"Expected {what}, but there is none.")
        value = run.evaluator.evaluate_text(catch.when, view, what, "timer")
        spec = read_time(value, catch.timer_kind, what)
    try:
        due = spec.first(run.now)
        left = spec.count_fires(run.now)
    except (InvalidSchedule, OverflowError, ValueError) as error:
        raise Fault("timer", f"Expected {what} to be a time, but: {error}") from None
    if due is None or (left is not None and left < 1):
        raise Fault("timer", f"Expected {what} to come, but '{spec.text}' never fires.")
    if due > run.now + LONGEST:
        raise Fault("timer", f"Expected {what} to come within a hundred years, but '{spec.text}' does not.")
    is_once = is_single or isinstance(spec, AtDate | AfterDuration)
    return TimerWait("" if is_once else spec.text, run.now, due, 1 if is_once else left)


def read_time(value: Any, kind: TimerKind | None, what: str) -> AnySpec:
    """The time that an expression gave. Raises Fault."""
    text = to_text(value) if type(value) in TYPE_NAMES else value
    if kind is TimerKind.DURATION and isinstance(text, str) and text.strip().startswith("-P"):
        text = "PT0S"  # until what has passed already: fires now, as a date in the past does
    if not isinstance(text, str) or not text.strip():
        raise Fault("timer", f"Expected {what} to be a duration, date or cycle, but it is {show_value(text)}.")
    try:
        spec = make_spec(text.strip())
    except InvalidSchedule as error:
        raise Fault("timer", f"Expected {what} to be a duration, date or cycle, but: {error.message}") from None
    if (kind is TimerKind.DURATION and not isinstance(spec, AfterDuration)) or (
        kind is TimerKind.DATE and not isinstance(spec, AtDate)
    ):
        raise Fault("timer", f"Expected {what} to be a {kind.value}, but it is {show_value(text)}.")
    return spec


def arm(run: Run, one: Instance, prepared: Sequence[Prepared]) -> None:
    """Let an instance wait for all of these."""
    if not prepared:
        return
    waits = [_begin(run, one, item) for item in prepared]
    run.emit(records.Waits(one.key, tuple(waits)))
    for wait in waits:
        if wait.name and wait.name in run.state.signals:
            run.push(one.key, SIGNAL, str(wait.number))


def _begin(run: Run, one: Instance, prepared: Prepared) -> Wait:
    catch = prepared.catch
    node = catch.node
    number = run.next_number()
    label = node.name or node.id
    if prepared.timer is not None:
        is_date = catch.timer_kind is not TimerKind.DURATION
        run.issue(commands.StartTimer(number=number, due=prepared.timer.due, is_date=is_date, label=label))
        return Wait(number, "timer", node.id, timer=prepared.timer)
    is_standing = not catch.is_interrupting
    run.issue(
        commands.Subscribe(
            number=number,
            kind=SubscriptionKind.MESSAGE if catch.kind == "message" else SubscriptionKind.BROADCAST,
            name=prepared.name,
            key=prepared.key,
            standing=is_standing,
            label=label,
        )
    )
    return Wait(number, catch.kind, node.id, prepared.name, is_standing)


def rearm(run: Run, one: Instance, wait: Wait) -> bool:
    """Let a timer that has fired fire again, if it is a cycle that goes on; whether it does."""
    timer = wait.timer
    if timer is None or not timer.text or timer.left == 1:
        return False
    due = find_next(timer)
    if due is None:
        return False
    number = run.next_number()
    left = None if timer.left is None else timer.left - 1
    run.issue(
        commands.StartTimer(number=number, due=due, is_date=True, label=run.process.name_of(wait.catcher) or wait.catcher)
    )
    next_wait = Wait(number, "timer", wait.catcher, timer=TimerWait(timer.text, timer.armed_at, due, left))
    run.emit(records.Waits(one.key, (next_wait,)))
    return True


def find_next(timer: TimerWait) -> Instant | None:
    """When a cycle fires after it has fired: counted from when that was due, not from the clock."""
    try:
        return make_spec(timer.text).next_after(timer.armed_at, timer.due)
    except (InvalidSchedule, OverflowError, ValueError):
        return None


def end_waits(run: Run, waits: Iterable[Wait]) -> None:
    """Ask for waits to end; the record that removes them is the caller's."""
    for wait in waits:
        number = wait.number
        match wait.kind:
            case "activity":
                run.issue(commands.CancelActivity(number=number))
            case "timer":
                run.issue(commands.CancelTimer(number=number))
            case "child":
                run.issue(commands.CancelChild(number=number))
            case "task":
                run.issue(commands.EndTask(number=number))
            case _:
                run.issue(commands.Unsubscribe(number=number))


def waits_of(run: Run, one: Instance) -> list[Wait]:
    """All that an instance waits for, the oldest first."""
    return [run.state.waits[number][1] for number in one.waits]
