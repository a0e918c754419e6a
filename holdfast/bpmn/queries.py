"""What can be asked of a process: what is active in it, and its variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bpmn.repairing.updates import find_scope
from holdfast.bpmn.state import ROOT, State
from holdfast.bpmn.values import to_json
from holdfast.core.payloads import Payload
from holdfast.errors import InvalidArguments, UnknownQuery

if TYPE_CHECKING:
    from holdfast.bpmn.executable import CompiledProcess

VARIABLES: Final = "holdfast.variables"
STATE: Final = "holdfast.state"
NAMES: Final = (VARIABLES, STATE)


class _Asked(msgspec.Struct, frozen=True):
    scope: str | None = None


_ASKED: Final = msgspec.json.Decoder(_Asked)


def answer(process: CompiledProcess, state: State, name: str, args: Payload) -> Payload:
    """The answer to a query. Raises UnknownQuery or InvalidArguments."""
    if name == VARIABLES:
        return Payload(msgspec.Raw(_show_variables(state, args)))
    if name == STATE:
        return Payload(msgspec.Raw(msgspec.json.encode({"elements": _list_elements(process, state)})))
    raise UnknownQuery(
        f"Expected a query that processes answer, but '{name}' is none ({', '.join(NAMES)}). Ask for one of these.",
        known=NAMES,
    )


def _show_variables(state: State, args: Payload) -> bytes:
    raw = bytes(args.data).strip()
    if raw.startswith(b"["):
        raw = raw[1:-1].strip()
    try:
        asked = _Asked() if raw in (b"", b"null") else _ASKED.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidArguments(f"Expected a query for variables to name a scope, but {error}.") from None
    if asked.scope is None:
        root = state.active.get(ROOT)
        return to_json(state.final if root is None else root.variables or {})
    one = find_scope(state, asked.scope)
    if one is None:
        raise InvalidArguments(
            f"Expected an active element '{asked.scope}', but there is none. Name an active one, or leave it out."
        )
    return to_json(one.variables or {})


def _list_elements(process: CompiledProcess, state: State) -> list[dict[str, Any]]:
    return [
        {
            "key": one.key,
            "element": one.element,
            "name": process.name_of(one.element),
            "kind": _name_kind(process, one.element),
            "scope": one.scope or None,
            "phase": one.phase,
            "incidents": sorted(one.incidents),
            "waits": [state.waits[number][1] for number in one.waits],
            "variables": None if one.variables is None else msgspec.Raw(to_json(one.variables)),
        }
        for one in state.active.values()
    ]


def _name_kind(process: CompiledProcess, element: str) -> str:
    node = process.nodes.get(element)
    if node is None:
        return "process"
    name = type(node.element).__name__
    return name[0].lower() + name[1:]
