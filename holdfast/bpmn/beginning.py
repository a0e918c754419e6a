"""How a process begins: with the variables it was started with, at its start event, its event sub-processes waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.containers import begin_inside
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import pass_event
from holdfast.bpmn.state import ENTERING, ROOT, WORKING, StartPoint
from holdfast.bpmn.values import Variable, read_object, show_json, to_raws
from holdfast.bpmn.variables import View
from holdfast.bpmn.waiting import arm, prepare
from holdfast.core import commands
from holdfast.core.failures import describe_exception
from holdfast.core.signatures import read_named_arguments
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.bpmn.running import Run


def begin_process(run: Run) -> None:
    """Begin the process, or go on with it after an incident at its beginning.

    What its event sub-processes wait for is an incident if it cannot be evaluated: nothing inside begins without it.
    """
    start = run.state.start
    if start is None:
        return
    variables = _read_input(start)
    if variables is None:
        shown = show_json(start.input.data)
        _fail(run, f"to be started with an object of variables, but it got {shown}. Pass a dict.")
        return
    node = run.process.starts.get(start.element)
    if start.element and node is None:
        _fail(run, f"to have a start event '{start.element}', but it has none.")
        return
    if node is None and not run.process.container.initial:
        _fail(run, "to have a start event without a trigger, but all of its start events wait for something.")
        return
    is_mapped = node is not None and bool(node.outputs)
    is_first = run.state.root is None
    view = View((variables,)) if is_first else run.look(ROOT).within(variables if is_mapped else None)
    own = to_raws({} if is_mapped else variables)
    container = run.process.container
    try:
        armed = [prepare(run, catch, view) for catch in container.catches]
    except Fault as fault:
        if is_first:
            run.emit(records.Entered(ROOT, run.process.id, 0, ENTERING, own))
        raise_incident(run, run.state.active[ROOT], fault, ENTERING)
        return
    run.emit(records.Entered(ROOT, run.process.id, 0, WORKING, own) if is_first else records.Began(ROOT))
    root = run.state.active[ROOT]
    arm(run, root, armed)
    if node is None:
        begin_inside(run, root, container)
    else:
        pass_event(run, node, Place(ROOT), variables if is_mapped else {})


def _read_input(start: StartPoint) -> dict[str, Variable] | None:
    payload = start.input
    if payload.named:
        named = read_named_arguments(payload)
        if named is None or named.args:
            return None
        return {name: Variable(bytes(value)) for name, value in named.kwargs.items()}
    raw = bytes(payload.data).strip()
    if raw in (b"null", b"[]"):
        return {}
    if raw.startswith(b"["):
        try:
            items = msgspec.json.decode(raw, type=tuple[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            return None
        raw = bytes(items[0])
        if raw == b"null":
            return {}
    return read_object(raw)


def _fail(run: Run, but: str) -> None:
    error = InvalidArguments(f"Expected process '{run.process.id}' {but}")
    run.issue(commands.Fail(failure=describe_exception(error), is_final=True))
    run.is_over = True
