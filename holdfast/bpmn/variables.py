"""Which variables an expression sees, and into which scope a value goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bpmn.state import ROOT, State
from holdfast.bpmn.values import Variable

if TYPE_CHECKING:
    from holdfast.bpmn.state import Instance, Loop

_NULL: Final = msgspec.Raw(b"null")
Changes = dict[int, dict[str, Variable]]
"""By the key of a scope: variables that are to have other values."""


class ResultsSoFar(Mapping[str, Variable]):
    """What iterations see of the body around them: under the name of its output collection, the results so far.

    It is found by its name, and is not among all variables: else the inputs of all jobs together would grow by the square of
    the iterations.
    """

    __slots__ = ("loop",)

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def __getitem__(self, name: str) -> Variable:
        if name != self.loop.collection:
            raise KeyError(name)
        return collect_results(self.loop)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def collect_results(loop: Loop, more: Mapping[int, msgspec.Raw] | None = None) -> Variable:
    """The results of iterations in the order of their collection, null for those that have none; with `more` of them."""
    slots = {**loop.slots, **more} if more else loop.slots
    return Variable(msgspec.json.encode([slots.get(index, _NULL) for index in range(loop.total)]))


class View(Mapping[str, Any]):
    """The variables that are visible from one place, as FEEL asks for them: the nearest scope that has a name counts."""

    __slots__ = ("layers",)

    def __init__(self, layers: Sequence[Mapping[str, Variable]]) -> None:
        self.layers = layers
        """The variables of each scope, the innermost first."""

    def get(self, name: str, default: Any = None) -> Any:
        """The FEEL value of a variable."""
        for layer in self.layers:
            found = layer.get(name)
            if found is not None:
                return found.feel
        return default

    def __getitem__(self, name: str) -> Any:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found.feel

    def __contains__(self, name: object) -> bool:
        return any(name in layer for layer in self.layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.flatten())

    def __len__(self) -> int:
        return len(self.flatten())

    def find(self, name: str) -> Variable | None:
        """A variable as it is stored."""
        for layer in self.layers:
            found = layer.get(name)
            if found is not None:
                return found
        return None

    def flatten(self) -> dict[str, Variable]:
        """All visible variables by name, the nearest of each."""
        found: dict[str, Variable] = {}
        for layer in reversed(self.layers):
            found.update(layer)
        return found

    def within(self, inner: Mapping[str, Variable] | None) -> View:
        """What is visible where these variables are nearer; the same view if there are none."""
        return View((inner, *self.layers)) if inner else self


def look_from(state: State, key: int, changes: Changes | None = None) -> View:
    """What is visible from an instance outward; with changes, as if they had been made."""
    layers: list[Mapping[str, Variable]] = []
    while key:
        one = state.active[key]
        if changes is not None and key in changes:
            layers.append(changes[key])
        if one.variables:
            layers.append(one.variables)
        if one.loop is not None and one.loop.collection:
            layers.append(ResultsSoFar(one.loop))
        key = one.scope
    return View(layers)


def place(state: State, key: int, variables: Mapping[str, Variable], changes: Changes) -> None:
    """Add to the changes each variable in the nearest scope from `key` outward that has its name, else in the process."""
    for name, value in variables.items():
        changes.setdefault(_find_scope(state, key, name), {})[name] = value


def _find_scope(state: State, key: int, name: str) -> int:
    while key:
        one: Instance = state.active[key]
        if one.variables is not None and name in one.variables:
            return key
        key = one.scope
    return ROOT
