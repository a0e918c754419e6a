"""Errors and escalations: they go outward until an event catches them by their code.

At each level come first the boundary events of the element, then the event sub-processes of its scope, but not the one that
the element is inside of, and none if the scope was interrupted; then the boundary events of that scope, and so on. At each
of them an event with the code comes before one that catches all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.boundaries import interrupt_scope, pass_boundary, start_event_sub_process
from holdfast.bpmn.state import ROOT, Instance
from holdfast.bpmn.values import Variable, make_text, to_json
from holdfast.core import commands
from holdfast.core.parents import ALL_CODES
from holdfast.core.payloads import Payload

if TYPE_CHECKING:
    from holdfast.bpmn.executable import CodeCatch, Container, Node
    from holdfast.bpmn.running import Run


@dataclass(frozen=True, slots=True)
class Thrown:
    """An error or escalation on its way."""

    code: str
    message: str = ""
    variables: dict[str, Variable] | None = None


@dataclass(frozen=True, slots=True)
class _Level:
    """Events of one level that may catch: those attached to a host, or the event sub-processes of a scope."""

    catches: Sequence[CodeCatch]
    host: Instance | None
    scope: Instance | None


def _list_levels(
    run: Run, one: Instance | None, scope: int, pick: Callable[[Node | Container], Sequence[CodeCatch]]
) -> Iterator[_Level]:
    active = run.state.active
    inside: set[str] = set()
    if one is not None:
        if one.index < 0:
            yield _Level(pick(run.node_of(one)), one, None)
        inside.add(one.element)
    while scope:
        current = active[scope]
        if current.loop is not None:
            yield _Level(pick(run.node_of(current)), current, None)
        else:
            container = run.container_of(current)
            if container is not None and not current.is_interrupted:
                subs = container.event_sub_processes
                yield _Level([each for each in pick(container) if subs[each.node.id].node.id not in inside], None, current)
            if current.key != ROOT and current.index < 0:
                yield _Level(pick(run.node_of(current)), current, None)
            inside.add(current.element)
        scope = current.scope


def _find(
    run: Run, one: Instance | None, scope: int, code: str, pick: Callable[[Node | Container], Sequence[CodeCatch]]
) -> tuple[_Level, CodeCatch] | None:
    for level in _list_levels(run, one, scope, pick):
        for catch in level.catches:
            if catch.code in ("", code):
                return level, catch
    return None


def _pick_errors(holder: Node | Container) -> Sequence[CodeCatch]:
    return holder.errors


def _pick_escalations(holder: Node | Container) -> Sequence[CodeCatch]:
    return holder.escalations


def catches_error(run: Run, scope: int, code: str) -> bool:
    """Whether anything catches an error that an element of a scope throws."""
    if code in run.state.catches or ALL_CODES in run.state.catches:
        return True
    return _find(run, None, scope, code, _pick_errors) is not None


def throw_error(run: Run, one: Instance | None, scope: int, thrown: Thrown) -> bool:
    """Throw an error from an instance, or from an element that a token passes in a scope; whether anything catches it."""
    found = _find(run, one, scope, thrown.code, _pick_errors)
    if found is not None:
        _catch(run, *found, thrown)
        return True
    if thrown.code in run.state.catches or ALL_CODES in run.state.catches:
        _end_process(run, records.Ending(thrown.code, thrown.message, _pack(thrown)))
        return True
    return False


def interrupts_thrower(run: Run, scope: int, code: str) -> bool:
    """Whether what catches an escalation out of a scope, here or in a caller, ends the token that throws it."""
    found = _find(run, None, scope, code, _pick_escalations)
    return _ends_child(run, code) if found is None else found[1].is_interrupting


def _ends_child(run: Run, code: str) -> bool:
    """Whether the nearest caller that catches an escalation ends this process by it."""
    state = run.state
    return (code if code in state.catches_escalations else ALL_CODES) in state.interrupting_escalations


def throw_escalation(run: Run, one: Instance | None, scope: int, thrown: Thrown) -> None:
    """Throw an escalation. What nothing catches is no fault."""
    found = _find(run, one, scope, thrown.code, _pick_escalations)
    if found is not None:
        _catch(run, *found, thrown)
    elif thrown.code in run.state.catches_escalations or ALL_CODES in run.state.catches_escalations:
        if _ends_child(run, thrown.code):
            _end_process(run, records.Ending(thrown.code, thrown.message, _pack(thrown), is_escalation=True))
        else:
            run.issue(commands.Escalate(code=thrown.code, value=_pack(thrown)))


def _end_process(run: Run, ending: records.Ending) -> None:
    root = run.state.active[ROOT]
    interrupt_scope(run, root)
    run.emit(ending)
    run.touched.append(ROOT)


def _pack(thrown: Thrown) -> Payload:
    return Payload(msgspec.Raw(to_json(thrown.variables or {})))


def _catch(run: Run, level: _Level, catch: CodeCatch, thrown: Thrown) -> None:
    result = dict(thrown.variables or {})
    if catch.code_variable:
        result[catch.code_variable] = make_text(thrown.code)
    if catch.message_variable:
        result[catch.message_variable] = make_text(thrown.message)
    if level.host is not None:
        pass_boundary(run, level.host, catch.node, result, is_interrupting=catch.is_interrupting)
        return
    scope = level.scope
    if scope is None:
        return
    container = run.container_of(scope)
    if container is None:
        return
    sub = container.event_sub_processes[catch.node.id]
    if catch.is_interrupting:
        interrupt_scope(run, scope)
        run.emit(records.Interrupted(scope.key))
    start_event_sub_process(run, scope, sub, result)


def list_caught_errors(run: Run, one: Instance | None, scope: int) -> tuple[str, ...]:
    """The codes of errors that are caught around an instance, also by the callers of this process."""
    errors = set(run.state.catches)
    for level in _list_levels(run, one, scope, _pick_errors):
        errors.update(catch.code for catch in level.catches)
    return tuple(sorted(errors))


def list_caught_escalations(run: Run, one: Instance | None, scope: int) -> dict[str, bool]:
    """The same for escalations: by code, whether the nearest event that catches it is interrupting."""
    state = run.state
    found: dict[str, bool] = {}
    for level in _list_levels(run, one, scope, _pick_escalations):
        if ALL_CODES not in found:  # else nothing gets further out
            for catch in level.catches:
                found.setdefault(catch.code, catch.is_interrupting)
    if ALL_CODES not in found:
        for code in state.catches_escalations:
            found.setdefault(code, code in state.interrupting_escalations)
    return dict(sorted(found.items()))
