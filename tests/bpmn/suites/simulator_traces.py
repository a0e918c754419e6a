"""What the token simulator saw, and what the interpreter recorded, in one form: per scope, what was entered and left.

The simulator's trace is a list of `verb:element:scope`. Each `createScope` makes the next scope, named A to Z, then A1 and
so on; the first of a trace is named by a line behind it. `enter` names the scope around the element, `exit`, `signal` and
`destroyScope` that of the element itself. Flows are elements to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass
class ScopeTrace:
    """What happened in one process or sub-process instance, in order."""

    element: str
    entered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What was left in whatever way: completed, or ended by something else."""


@dataclass
class SimulatedScope:
    """A scope of the simulator: an instance of an element, also of a flow."""

    element: str
    parent: str
    is_entered: bool = False
    is_left: bool = False


def name_scope(index: int) -> str:
    """The name of the scope that the simulator makes as the one with an index from 0 on."""
    number, letter = divmod(index, len(_LETTERS))
    return _LETTERS[letter] + (str(number) if number else "")


def read_name(name: str) -> int:
    """The index of the scope with a name."""
    return _LETTERS.index(name[0]) + len(_LETTERS) * int(name[1:] or 0)


class SimulatorTrace:
    """Reads the lines of a trace, one part after the other."""

    def __init__(self, flows: Iterable[str], message_flows: Iterable[str]) -> None:
        self._flows = set(flows)
        self._message_flows = set(message_flows)
        self._scopes: dict[str, SimulatedScope] = {}
        self._next: int | None = None
        self.traces: dict[str, ScopeTrace] = {}

    def read(self, lines: Sequence[str]) -> None:
        """Take the next lines of the trace."""
        for place, line in enumerate(lines):
            verb, element, scope = line.split(":")
            if verb == "createScope":
                self._create(element, scope, lines[place + 1 :])
            elif verb == "enter":
                self._enter(element, scope)
            elif verb == "signal":
                self._note_entered(self._scopes[scope])
            else:
                self._note_left(self._scopes[scope], scope)

    def _create(self, element: str, parent: str, following: Sequence[str]) -> None:
        if self._next is None:
            own = next(line for line in following if line.startswith(f"signal:{element}:")).rpartition(":")[2]
            self._next = read_name(own)
        name = name_scope(self._next)
        self._next += 1
        self._scopes[name] = SimulatedScope(element, parent)
        if parent == "null" and element not in self._message_flows:
            self.traces[name] = ScopeTrace(element)

    def _enter(self, element: str, parent: str) -> None:
        entered = next(
            one for one in self._scopes.values() if (one.element, one.parent, one.is_entered) == (element, parent, False)
        )
        self._note_entered(entered)

    def _note_entered(self, scope: SimulatedScope) -> None:
        if scope.is_entered:
            return
        scope.is_entered = True
        if scope.parent == "null":
            return
        if scope.element not in self._flows:
            self._find_trace(scope.parent).entered.append(scope.element)

    def _note_left(self, scope: SimulatedScope, name: str) -> None:
        if scope.is_left or scope.parent == "null" or scope.element in self._flows:
            return
        scope.is_left = True
        if scope.is_entered:
            self._find_trace(scope.parent).left.append(scope.element)

    def _find_trace(self, name: str) -> ScopeTrace:
        found = self.traces.get(name)
        if found is None:
            found = self.traces[name] = ScopeTrace(self._scopes[name].element)
        return found


def read_records(records: Iterable[Sequence[Any]]) -> dict[int, ScopeTrace]:
    """What the interpreter recorded of one execution, by the key of the scope.

    A token that arrives at a joining gateway enters it, as in the simulator; when the gateway fires, all leave it.
    """
    traces: dict[int, ScopeTrace] = {}
    active: dict[int, tuple[str, int]] = {}
    for name, *rest in records:
        match name, rest:
            case "entered", [key, element, scope, *_]:
                active[key] = element, scope
                if scope:
                    traces.setdefault(scope, ScopeTrace(active[scope][0])).entered.append(element)
                else:
                    traces[key] = ScopeTrace(element)
            case "passed", [element, scope, *_]:
                around = traces.setdefault(scope, ScopeTrace(active[scope][0]))
                around.entered.append(element)
                around.left.append(element)
            case "left", [key, *_]:
                element, scope = active.pop(key)
                if scope:
                    traces[scope].left.append(element)
            case "ended", [key]:
                for gone in _list_inside(active, key):
                    element, scope = active.pop(gone)
                    if scope:
                        traces[scope].left.append(element)
            case "arrived", [element, scope, _]:
                traces.setdefault(scope, ScopeTrace(active[scope][0])).entered.append(element)
            case "joined", [element, scope, taken, _]:
                traces[scope].left += [element] * len(taken)
            case _:
                pass
    return traces


def _list_inside(active: dict[int, tuple[str, int]], key: int) -> Iterator[int]:
    """An instance and all that is inside of it, the innermost first."""
    for inner in [inner for inner, (_, scope) in active.items() if scope == key]:
        yield from _list_inside(active, inner)
    yield key


def count_traces(traces: Iterable[ScopeTrace]) -> Counter[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Traces as values that can be compared, whichever scope began first."""
    return Counter((one.element, tuple(one.entered), tuple(one.left)) for one in traces)
