"""Texts of FEEL inside a model: compiled once, evaluated as part of one run. Only this file knows how FEEL compiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from holdfast.dmn.problems import Problems
from holdfast.errors import FeelError, FeelSyntaxError
from holdfast.feel import syntax
from holdfast.feel.compiler import Compiler
from holdfast.feel.parser import parse_expression, parse_unary_tests
from holdfast.feel.running import Run
from holdfast.feel.scopes import FIRST, Scope, Unit
from holdfast.feel.types import Types
from holdfast.feel.values import Value
from holdfast.feel.weights import weigh

Context: TypeAlias = dict[str, Value]
"""The variables that an expression sees. Never changed by evaluating."""


class Text:
    """A FEEL expression of a model, compiled; `tree` is what was parsed."""

    __slots__ = ("_blank", "_evaluate", "_weight", "names", "tree")

    def __init__(self, text: str, tree: syntax.Node, scope: Scope, types: Types | None) -> None:
        self.tree = tree
        self._evaluate = Compiler(types, text).compile(tree, scope)
        self._blank: tuple[Value, ...] = (None,) * (scope.unit.size - FIRST)
        self.names = frozenset(scope.unit.names)
        """The names that it takes from its context."""
        self._weight = weigh(tree)

    def evaluate(self, run: Run, context: Mapping[str, Value]) -> Value:
        """Its value, as part of a run. A long one counts as steps by itself: it may be evaluated again and again."""
        weight = self._weight
        if weight.steps:
            run.spend(weight.steps, weight.size)
        return self._evaluate([context, run, *self._blank])


class Tests(Text):
    """Unary tests of a model, compiled: those of a cell, or of the values that are allowed somewhere."""

    __slots__ = ("_place", "_steps", "tests")

    def __init__(self, text: str, tree: syntax.UnaryTests, scope: Scope, types: Types | None) -> None:
        self.tests = tree
        self._place = scope.declare("?")
        super().__init__(text, tree, scope, types)
        self._steps = 1 + max(len(tree.tests), self._weight.steps)

    def test(self, run: Run, value: Value, context: Mapping[str, Value]) -> bool:
        """Whether the value meets one of them. Each of them is a step."""
        run.spend(self._steps)
        frame: list[Value] = [context, run, *self._blank]
        frame[self._place] = value
        return self._evaluate(frame) is True


class Visible:
    """The names that can be seen where a text stands. They come and go while a model is compiled from the outside in."""

    __slots__ = ("_counts", "_lengths", "_special")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._counts: dict[str, int] = {}
        self._special: dict[tuple[str, ...], dict[str, None]] = {}
        """Those that are more than plain words, which need no help to be names, by the words in them."""
        self._lengths: set[int] = set()
        for name in names:
            self.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    def add(self, name: str) -> None:
        """From here on it can be seen."""
        self._counts[name] = self._counts.get(name, 0) + 1
        if name and not name.isidentifier():
            words = _split(name)
            self._special.setdefault(words, {})[name] = None
            self._lengths.add(len(words))

    def remove(self, name: str) -> None:
        """What `add` added is seen no more; what has the same name further outside still is."""
        self._counts[name] -= 1
        if not self._counts[name]:
            del self._counts[name]
            self._special.get(_split(name), {}).pop(name, None)

    def find_special(self, text: Sequence[str]) -> Iterator[str]:
        """The names that are no plain words and may stand in a text of these words; quick, however many names there are."""
        for length in self._lengths:
            for at in range(len(text) - length + 1):
                yield from self._special.get(tuple(text[at : at + length]), ())


_WORD: Final = re.compile(r"\w+")
_MOST_WORDS: Final = 8
"""Words of a name by which it is found."""


def _split(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(name)[:_MOST_WORDS])


class TextCompiler:
    """Compiles the texts of one model. What cannot be parsed becomes a problem."""

    def __init__(self, problems: Problems, types: Types, inner_names: Iterable[str]) -> None:
        """`inner_names` are those of components, which may stand behind a dot anywhere."""
        self._problems = problems
        self._types = types
        self._inner = Visible(inner_names)
        self._cached: dict[tuple[str, bool, tuple[str, ...]], Text] = {}

    def compile(self, text: str, place: str, visible: Visible) -> Text:
        """An expression that may use these names. An empty text is null."""
        return self._compile(text or "null", place, visible, is_tests=False)

    def compile_tests(self, text: str, place: str, visible: Visible) -> Tests:
        """Unary tests that may use these names. An empty text is `-`."""
        found = self._compile(text or "-", place, visible, is_tests=True)
        assert isinstance(found, Tests)  # noqa: S101 - what was asked for
        return found

    def _compile(self, text: str, place: str, visible: Visible, *, is_tests: bool) -> Text:
        words = _WORD.findall(text)
        used = tuple(sorted({*visible.find_special(words), *self._inner.find_special(words)}))
        found = self._cached.get((text, is_tests, used))
        return found or self._parse(text, place, used, is_tests=is_tests)

    def _parse(self, text: str, place: str, names: tuple[str, ...], *, is_tests: bool) -> Text:
        try:
            made = self._cached[text, is_tests, names] = self._make(text, names, is_tests=is_tests)
            return made
        except FeelSyntaxError as error:
            shown = f"\n{error.shown}" if error.shown else ""
            self._problems.add(place, f"{error.message} (line {error.line}, column {error.column} of its text){shown}")
        except (FeelError, RecursionError) as error:
            self._problems.add(place, str(error) or "Expected a shorter expression, but it is too deep. Take it apart.")
        return self._make("-" if is_tests else "null", (), is_tests=is_tests)

    def _make(self, text: str, names: tuple[str, ...], *, is_tests: bool) -> Text:
        scope = Scope(Unit())
        if is_tests:
            return Tests(text, parse_unary_tests(text, names), scope, self._types)
        return Text(text, parse_expression(text, names), scope, self._types)


def has_filter(node: object) -> bool:
    """Whether there is a filter anywhere in a tree."""
    if isinstance(node, syntax.Filter):
        return True
    if isinstance(node, tuple):
        return any(has_filter(part) for part in node)
    if isinstance(node, syntax.Node | syntax.Iterator):
        return any(has_filter(getattr(node, name)) for name in node.__dataclass_fields__)
    return False
