"""Moving tokens until nothing can move, and giving to instances what they waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.bpmn import records
from holdfast.bpmn.boundaries import pass_boundary, trigger_event_sub_process
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.multi_instance import enter_body, find_next
from holdfast.bpmn.handlers.table import find_handler
from holdfast.bpmn.mappings import read_result
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import find_deadlocks, settle
from holdfast.bpmn.state import ELEMENT, FLOW, ITERATION, ROOT, SIGNAL, WORKING
from holdfast.bpmn.waiting import rearm
from holdfast.core import commands, events

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.records import Wait
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance
    from holdfast.core.payloads import Payload


def run_to_rest(run: Run) -> None:
    """Move tokens until none can move, or the turn has done enough."""
    while not run.is_over:
        if run.thrown:
            _give_own(run)
        settle(run)
        run.skip_lost()
        if run.is_over or not run.queue:
            break
        if run.is_full:
            _keep(run)
            break
        _move(run)
    if not run.is_over:
        find_deadlocks(run)  # also where tokens of other scopes are kept: the next turn does not look at these again


def _keep(run: Run) -> None:
    """The turn has done enough: a timer that is due at once goes on."""
    number = run.state.yielding
    if not number:
        number = run.next_number()
        run.issue(commands.StartTimer(number=number, due=run.now, is_date=True, label="goes on"))
    run.emit(records.Kept(tuple(token for token in run.queue if token[0] in run.state.active), number))


def _move(run: Run) -> None:
    scope, what, id_ = run.pop()
    if what == FLOW:
        enter(run, run.process.flows[id_].target, Place(scope, id_))
    elif what == ELEMENT:
        enter(run, run.process.nodes[id_], Place(scope))
    elif what == ITERATION:
        _begin_iteration(run, run.state.active[scope])
    else:
        _give_signal(run, int(id_))


def enter(run: Run, node: Node, place: Place) -> None:
    """Let a token enter an element, or an instance try again that failed to."""
    if node.loop is not None and place.index < 0:
        enter_body(run, node, node.loop, place)
    else:
        find_handler(node).enter(run, node, place)


def _begin_iteration(run: Run, body: Instance) -> None:
    node = run.node_of(body)
    place = None if node.loop is None else find_next(run, body, node.loop)
    if place is not None:
        find_handler(node).enter(run, node, place)


# --- what arrives ---


def trigger(run: Run, key: int, wait: Wait, event: Any) -> None:
    """Give to whoever waits what came: an instance itself, its boundary event, or an event sub-process of it."""
    one = run.state.active[key]
    if wait.catcher == one.element:
        find_handler(run.node_of(one)).trigger(run, one, wait, event)
        return
    container = run.container_of(one)
    sub = None if container is None else container.event_sub_processes.get(wait.catcher)
    if sub is None and (key == ROOT or not _is_boundary(run, one, wait.catcher)):
        find_handler(run.node_of(one)).trigger(run, one, wait, event)
        return
    node = run.process.nodes[wait.catcher]
    if type(event) is events.SubscriptionFailed:
        raise_incident(run, one, Fault("message", event.failure.message), WORKING, wait.catcher)
        return
    try:
        result = {} if wait.kind == "timer" else read_result(event.value.data, node, "message")
    except Fault as fault:
        raise_incident(run, one, fault, WORKING, wait.catcher)
        return
    is_interrupting = node.catch is None or node.catch.is_interrupting
    if not is_interrupting and wait.kind == "timer":
        rearm(run, one, wait)
    if sub is not None:
        trigger_event_sub_process(run, one, sub, result)
    else:
        pass_boundary(run, one, node, result, is_interrupting=is_interrupting)
    run.touched.append(key)  # tokens at its joins may have hoped for this event


def _is_boundary(run: Run, one: Instance, catcher: str) -> bool:
    return any(catch.node.id == catcher for catch in run.node_of(one).boundaries)


# --- signals that name this execution ---


class GivenSignal:
    """A signal in the place of what a subscription would have been triggered by."""

    __slots__ = ("value",)

    def __init__(self, value: Payload) -> None:
        self.value = value


def receive_signal(run: Run, name: str, value: Payload) -> None:
    """A signal came for this execution: the oldest wait for its name gets it, else it is kept for the next one."""
    waiting = run.state.named.get(name)
    if not waiting or name in run.state.signals:
        run.emit(records.Buffered(name, value))
        return
    _give(run, next(iter(waiting)), value)


def _give_own(run: Run) -> None:
    """Give thrown signals to the waits of this execution that were open when they were thrown.

    That is before the scope of the throwing event may complete: else the boundary events and event sub-processes around it
    would be gone.
    """
    while run.thrown and not run.is_over:
        thrown, numbers = run.thrown.pop(0)
        waits = run.state.waits
        for number in numbers:
            if number in waits and not run.is_over:
                _give(run, number, thrown.value)


def _give_signal(run: Run, number: int) -> None:
    found = run.state.waits.get(number)
    values = None if found is None else run.state.signals.get(found[1].name)
    if found is None or not values:
        return
    value = values[0]
    run.emit(records.Taken(found[1].name))
    _give(run, number, value)


def _give(run: Run, number: int, value: Payload) -> None:
    key, wait = run.state.waits[number]
    if not wait.is_standing:
        run.issue(commands.Unsubscribe(number=number))
        run.emit(records.Unwaits((number,)))
    elif run.state.signals.get(wait.name):
        run.push(key, SIGNAL, str(number))
    trigger(run, key, wait, GivenSignal(value))
