"""Multi-instance activities: how often they are repeated, what each iteration sees, and when they are complete."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.bpmn.faults import Fault
from holdfast.bpmn.values import NULL, Variable, from_feel, make_number, show_json, show_value, split_items
from holdfast.bpmn.variables import collect_results

if TYPE_CHECKING:
    from holdfast.bpmn.executable import CompiledLoop, Node
    from holdfast.bpmn.running import Place, Run
    from holdfast.bpmn.state import Instance, Loop
    from holdfast.bpmn.variables import View

MOST_ITERATIONS: Final = 100_000
KIND: Final = "multi-instance"
COUNTER: Final = "loopCounter"


@dataclass(frozen=True, slots=True)
class Repeated:
    """How often an activity is repeated, and with which items; without items it only counts."""

    total: int
    items: tuple[msgspec.Raw, ...] | None


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of an iteration, and whether the whole activity is complete by it."""

    index: int
    value: Variable
    is_complete: bool


def evaluate_repeats(run: Run, node: Node, loop: CompiledLoop, view: View) -> Repeated:
    """Evaluate the collection or the cardinality, once. Raises Fault."""
    if loop.collection is not None:
        what = f"the collection of '{node.id}'"
        variable = from_feel(run.evaluator.evaluate_text(loop.collection, view, what, KIND), what)
        items = split_items(variable)
        if items is None:
            shown = show_json(variable.raw)
            raise Fault(KIND, f"Expected {what} to be a list, but it is {shown}. Set the variables that it reads.")
        run.evaluator.check_size(variable, what)
        _check_count(len(items), what)
        return Repeated(len(items), tuple(msgspec.Raw(item) for item in items))
    what = f"the cardinality of '{node.id}'"
    count = None if loop.cardinality is None else run.evaluator.evaluate(loop.cardinality, view, what, KIND)
    if type(count) is not Decimal or count != count.to_integral_value() or count < 0:
        raise Fault(
            KIND, f"Expected {what} to be a whole number, but it is {show_value(count)}. Set the variables that it reads."
        )
    _check_count(count, what)
    return Repeated(int(count), None)


def _check_count(count: int | Decimal, what: str) -> None:
    if count > MOST_ITERATIONS:
        raise Fault(
            KIND,
            f"Expected {what} to give at most {MOST_ITERATIONS:,} iterations, but it gives {count:,}. "
            "Let an activity or a called process work on parts of it.",
        )


def make_own(loop: CompiledLoop, state: Loop, index: int) -> dict[str, Variable]:
    """The own variables of an iteration."""
    # The variable of the output element, else iterations would meet in a variable of the process.
    own = {loop.output_variable: NULL} if loop.output_variable else {}
    own[COUNTER] = make_number(index + 1)
    if loop.element and state.items is not None:
        own[loop.element] = Variable(bytes(state.items[index]))
    return own


def prepare_finish(run: Run, node: Node, place: Place, view: View) -> Finished | None:
    """Evaluate the result of an iteration, and whether it completes the whole activity. Raises Fault."""
    loop = node.loop
    body = run.state.active[place.scope]
    if loop is None or body.loop is None:
        return None
    value = NULL
    if loop.output_element is not None:
        value = run.evaluator.make_variable(loop.output_element, view, f"the output element of '{node.id}'", "mapping")
    done = len(body.loop.slots) + 1
    is_complete = done >= body.loop.total
    if not is_complete and loop.completion is not None:
        # All iterations of a parallel one are active from its beginning, though they begin one after the other.
        active = 0 if loop.is_sequential else body.loop.total - done
        known = {
            # "The number of inner instances created": one by one in a sequential activity, as Camunda 8 counts, too.
            "numberOfInstances": make_number(done if loop.is_sequential else body.loop.total),
            "nrOfInstances": make_number(body.loop.total),
            "numberOfActiveInstances": make_number(active),
            "numberOfCompletedInstances": make_number(done),
            "numberOfTerminatedInstances": make_number(0),
        }
        if loop.output_collection and loop.output_collection in loop.completion.names:
            known[loop.output_collection] = collect_results(body.loop, {place.index: msgspec.Raw(value.raw)})
        seen = view.within(known)
        is_complete = run.evaluator.holds(loop.completion, seen, f"the completion condition of '{node.id}'")
    return Finished(place.index, value, is_complete)


def collect(body: Instance) -> Variable:
    """The results of all iterations, in the order of the collection; null for those that did not complete."""
    return NULL if body.loop is None else collect_results(body.loop)
