"""The item definitions of a model, made into types that values can be checked against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.dmn.imports import list_unnamed
from holdfast.dmn.model import Definitions, ItemDefinition, UnaryTests
from holdfast.dmn.problems import Problems
from holdfast.dmn.texts import TextCompiler, Visible
from holdfast.dmn.types import ANY, AnyFunction, BuiltIn, ListOf, Reference, Restricted, Structure, Type, to_syntax
from holdfast.feel import syntax
from holdfast.feel.types import BUILT_IN

_BUILT_IN: Final = {name: BuiltIn(name) for name in BUILT_IN}
_ALIASES: Final = {
    "": ANY,
    "Any": ANY,
    "any": ANY,
    "<Undefined>": ANY,
    # DMN 7.3.3 and DMN 1.1 write these without spaces.
    "dateTime": _BUILT_IN["date and time"],
    "dayTimeDuration": _BUILT_IN["days and time duration"],
    "days and time": _BUILT_IN["days and time duration"],
    "yearMonthDuration": _BUILT_IN["years and months duration"],
    # Camunda 7.
    "integer": _BUILT_IN["number"],
    "long": _BUILT_IN["number"],
    "double": _BUILT_IN["number"],
}
_MOST_ALIASES: Final = 50


class TypeDefinitions:
    """The types of one model, by name, among those of all models that were loaded with it."""

    def __init__(
        self, definitions: Definitions, problems: Problems, others: Mapping[str, TypeDefinitions], prefix: str
    ) -> None:
        """`others` are those of all models by namespace, also of those still to come; `prefix` tells their types apart."""
        self._definitions = definitions.types
        self._problems = problems
        self._others = others
        self._prefix = prefix
        self.namespace = definitions.namespace
        self.imports = definitions.imports
        self.types: dict[str, Type] = {}
        """By prefix and name."""
        self.syntax: dict[str, syntax.Type] = {}
        """For `instance of`, by all the names that expressions of the model have for types; filled by `define_all`."""
        self.component_names: list[str] = sorted(
            {name for definition in definitions.types.values() for name in _list_components(definition)}
        )

    def define(self, texts: TextCompiler) -> None:
        """Make every type of the model."""
        for name, definition in self._definitions.items():
            self.types[self._prefix + name] = ANY if self._is_only_itself(definition) else self._make(definition, texts)

    def name_all(self) -> None:
        """Let expressions of the model see its types, and those of the models that it imports, once all are made."""
        for one in self._others.values():
            self.syntax.update((name, to_syntax(kind)) for name, kind in one.types.items())
        for one in reversed(list(list_unnamed(self, self._others))):
            self.syntax.update((name, self.syntax[one._prefix + name]) for name in one._definitions)
        for imported in self.imports:
            other = self._others.get(imported.namespace)
            if imported.name and other is not None:
                self.syntax.update(
                    (f"{imported.name}.{name}", self.syntax[other._prefix + name]) for name in other._definitions
                )

    def find(self, type_ref: str, place: str) -> Type:
        """The type of that name. A name that nobody knows is a problem."""
        known = self._find_own(type_ref) or _BUILT_IN.get(type_ref) or _ALIASES.get(type_ref)
        known = known or self._find_imported(type_ref)
        if known is None:
            self._problems.add(
                place,
                f"Expected a type that is known, but {type_ref!r} is not. Add an item definition, or correct the typeRef.",
            )
            return ANY
        return known

    def _find_own(self, name: str) -> Type | None:
        return Reference(self._prefix + name, self.types) if name in self._definitions else None

    def _find_imported(self, type_ref: str) -> Type | None:
        for imported in self.imports:
            other = self._others.get(imported.namespace)
            if other is not None and imported.name and type_ref.startswith(f"{imported.name}."):
                found = other._find_own(type_ref.removeprefix(f"{imported.name}."))
                if found is not None:
                    return found
        # DMN 1.1 had a prefix of XML before the name of a type, which is gone by now: then any import may have it.
        near = list_unnamed(self, self._others)
        any_ = (self._others[one.namespace] for one in self.imports if one.namespace in self._others)
        return next((found for one in (*near, *any_) if (found := one._find_own(type_ref)) is not None), None)

    def _make(self, definition: ItemDefinition, texts: TextCompiler) -> Type:
        made: Type
        if definition.is_function:
            made = AnyFunction()
        elif definition.components:
            components = tuple((inner.name, self._make(inner, texts)) for inner in definition.components)
            made = Structure(definition.name, components)
        else:
            made = self.find(definition.type_ref, definition.place)
        # DMN 7.3.3: allowed values are those of the items, a type constraint is one of the whole.
        made = _restrict(made, definition.allowed_values, texts)
        if definition.is_collection:
            made = ListOf(made)
        return _restrict(made, definition.type_constraint, texts)

    def _is_only_itself(self, definition: ItemDefinition) -> bool:
        """A type may hold itself in its components, but not be nothing but itself."""
        seen: list[str] = []
        inner: ItemDefinition | None = definition
        while inner is not None and not inner.components:
            if inner.name in seen:
                names = " -> ".join([*seen, inner.name])
                self._problems.add(
                    definition.place, f"Expected a type of something, but it is only itself: {names}. Change one."
                )
                return True
            seen.append(inner.name)
            if len(seen) > _MOST_ALIASES:
                self._problems.add(
                    definition.place,
                    f"Expected at most {_MOST_ALIASES} types behind each other, but there are more. Use fewer.",
                )
                return True
            inner = self._definitions.get(inner.type_ref)
        return False


def _restrict(of: Type, tests: UnaryTests | None, texts: TextCompiler) -> Type:
    return of if tests is None else Restricted(of, texts.compile_tests(tests.text, tests.place, Visible()), tests.text)


def _list_components(definition: ItemDefinition) -> list[str]:
    return [name for inner in definition.components for name in (inner.name, *_list_components(inner))]
