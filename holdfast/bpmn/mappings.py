"""Input and output mappings, and results: what an element sees of its own, and what leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.bpmn.faults import Fault
from holdfast.bpmn.values import Variable, from_feel, read_object, show_json
from holdfast.bpmn.variables import Changes, View, place

if TYPE_CHECKING:
    import msgspec

    from holdfast.bpmn.executable import CompiledMapping, Node
    from holdfast.bpmn.expressions import Evaluator
    from holdfast.bpmn.state import State

RESULT = "result"
"""Under this name output mappings find a result that is no object."""


def evaluate_inputs(evaluator: Evaluator, node: Node, view: View) -> dict[str, Variable] | None:
    """The own variables of an element by its input mappings, each of which sees those before it; None without mappings.

    A mapping to an entry of a context makes a new context: a variable of the same name outside stays out of it.
    """
    return _evaluate(evaluator, node.inputs, view, f"an input mapping of '{node.id}'", None) if node.inputs else None


def evaluate_outputs(
    evaluator: Evaluator, node: Node, state: State, places: tuple[int, int], view: View, result: Mapping[str, Variable]
) -> Changes:
    """What leaves an element that got a result. Raises Fault.

    `view` is what the element sees, `places` the keys of the innermost scope that it sees and of its container: from the
    first on a result without mappings finds its place, from the second on what output mappings make.
    """
    changes: Changes = {}
    if node.outputs:
        seen = view.within(result)
        made = _evaluate(evaluator, node.outputs, seen, f"an output mapping of '{node.id}'", seen)
        place(state, places[1], made, changes)
    elif result:
        place(state, places[0], result, changes)
    return changes


def _evaluate(
    evaluator: Evaluator, mappings: Sequence[CompiledMapping], view: View, what: str, before: View | None
) -> dict[str, Variable]:
    """The values of mappings by their names; entries of contexts are added to the variables that were there `before`."""
    found: dict[str, Variable] = {}
    for one in mappings:
        seen = view.within(found)
        value = evaluator.make_variable(one.source, seen, f"{what} to '{'.'.join(one.target)}'", "mapping")
        name, *way = one.target
        if way:
            context = found.get(name) or (None if before is None else before.find(name))
            value = from_feel(_put_inside(None if context is None else context.feel, way, value.feel), what)
            evaluator.check_size(value, what)
        found[name] = value
    return found


def _put_inside(context: Any, way: Sequence[str], value: Any) -> Any:
    """A context with one entry changed, made anew along the way."""
    if not way:
        return value
    entries = dict(context) if isinstance(context, dict) else {}
    entries[way[0]] = _put_inside(entries.get(way[0]), way[1:], value)
    return entries


def read_result(data: bytes | msgspec.Raw, node: Node, kind: str, variable: str = "") -> dict[str, Variable]:
    """The variables that a result consists of. Raises Fault for one that is no object, where nothing can take it.

    `variable` takes the whole result, if the task names one.
    """
    raw = bytes(data)
    if variable:
        return {variable: Variable(raw)}
    if raw == b"null":
        return {}
    found = read_object(raw)
    if found is not None:
        return found
    if node.outputs:
        return {RESULT: Variable(raw)}
    shown = show_json(raw)
    raise Fault(
        kind,
        f"Expected the result of '{node.id}' to be an object with variables, but it is {shown}. Return a dict, or add an "
        f"output mapping that reads '{RESULT}'.",
    )
