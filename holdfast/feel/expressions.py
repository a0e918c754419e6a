"""Expressions and unary tests that are parsed once and evaluated often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from holdfast.errors import FeelError, FeelLimitExceeded
from holdfast.feel import syntax
from holdfast.feel.compiler import Compiler
from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.json_values import to_feel
from holdfast.feel.lexer import find_begin, make_error
from holdfast.feel.mistakes import suggest
from holdfast.feel.parser import parse_expression, parse_unary_tests
from holdfast.feel.running import MOST_BYTES, MOST_STEPS, FeelWarning, Run
from holdfast.feel.scopes import FIRST, Frame, Scope, Unit
from holdfast.feel.types import Types
from holdfast.feel.values import Value

Clock = Callable[[], datetime]
Random = Callable[[int], int]

_EMPTY: Final[Mapping[str, Any]] = {}
_MOST_NAMES: Final = 10_000
"""Names of a context that are looked at for spaces and signs."""
_CACHED: Final = 1_024


class _Compiled:
    """What both kinds have in common."""

    __slots__ = ("_evaluate", "_size", "functions", "names", "text")

    def __init__(self, text: str, tree: syntax.Node, scope: Scope, types: Types | None) -> None:
        self.text = text
        """As it was given."""
        self._evaluate = Compiler(types, text).compile(tree, scope)
        self._size = scope.unit.size
        self.names = frozenset(scope.unit.names)
        """The variables that it asks the context for; in a filter, some of them may be entries of the items."""
        self.functions = frozenset(scope.unit.calls)
        """The functions among them: those that it calls, and that are neither its own nor built in."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def _run(self, frame: Frame) -> Value:
        try:
            return self._evaluate(frame)
        except RecursionError:
            raise FeelLimitExceeded(
                "Expected the expression to fit on the stack, but it goes too deep. Let fewer functions call each other."
            ) from None

    def _make_frame(self, context: Mapping[str, Any] | None, run: Run) -> Frame:
        if context is None:
            context = _EMPTY
        elif not isinstance(context, Mapping):
            raise FeelError(f"Expected a context of names and values, but found {type(context).__name__}. Pass a dict.")
        frame: Frame = [context, run]
        frame.extend([None] * (self._size - FIRST))
        return frame


class Expression(_Compiled):
    """A FEEL expression, compiled by `compile`, to be evaluated with one context after another."""

    __slots__ = ()

    def evaluate(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        warnings: list[FeelWarning] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        max_steps: int = MOST_STEPS,
        max_bytes: int = MOST_BYTES,
    ) -> Value:
        """Its value. What goes wrong inside gives null, and says why in `warnings`. Raises FeelError.

        `clock` gives an aware date-time for `now()` and `today()`; `random` so many bits for `uuid()` and the like.
        """
        return self._run(self._make_frame(context, Run(warnings, clock, random, max_steps, max_bytes)))

    def evaluate_within(self, context: Mapping[str, Any], run: Run) -> Value:
        """As `evaluate`; the run tells afterwards which steps are left to it. Raises FeelError."""
        return self._run(self._make_frame(context, run))


class UnaryTests(_Compiled):
    """Tests of one value, as in a cell of a decision table: `< 5`, `"a", "b"`, `[1..3]`, `not(…)`, `-`."""

    __slots__ = ("_place",)

    def __init__(self, text: str, tree: syntax.Node, scope: Scope, types: Types | None) -> None:
        self._place = scope.declare("?")
        super().__init__(text, tree, scope, types)

    def evaluate(
        self,
        value: Any,
        context: Mapping[str, Any] | None = None,
        *,
        warnings: list[FeelWarning] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        max_steps: int = MOST_STEPS,
        max_bytes: int = MOST_BYTES,
    ) -> bool | None:
        """Whether the value, which is `?`, meets one of the tests; None if that cannot be told. Raises FeelError."""
        frame = self._make_frame(context, Run(warnings, clock, random, max_steps, max_bytes))
        frame[self._place] = to_feel(value)
        answer = self._run(frame)
        return answer if type(answer) is bool else None


def compile(
    text: str, *, names: Iterable[str] = (), types: Types | None = None, functions: Iterable[str] | None = None
) -> Expression:
    """Parse an expression, to be evaluated often. A leading `=`, as Camunda 8 writes it, is left out.

    `names` are those with spaces, signs or keywords in them that the text may use. `functions`, if given, are all that the
    context will have: a call of another one, that is not built in either, is refused here. Raises FeelSyntaxError.
    """
    _check_text(text)
    begin = find_begin(text)
    is_marked = text.startswith("=", begin) and not text.startswith("==", begin)
    stripped = text if not is_marked else f"{text[:begin]} {text[begin + 1 :]}"
    names, functions, unit = tuple(names), None if functions is None else tuple(functions), Unit()
    expression = Expression(text, parse_expression(stripped, (*names, *(functions or ()))), Scope(unit), types)
    _check_functions(text, unit, names, functions)
    return expression


def compile_unary_tests(
    text: str, *, names: Iterable[str] = (), types: Types | None = None, functions: Iterable[str] | None = None
) -> UnaryTests:
    """Parse unary tests, to be evaluated often; otherwise as `compile`. An empty text is `-`."""
    _check_text(text)
    names, functions, unit = tuple(names), None if functions is None else tuple(functions), Unit()
    tree = parse_unary_tests(text if find_begin(text) < len(text) else "-", (*names, *(functions or ())))
    tests = UnaryTests(text, tree, Scope(unit), types)
    _check_functions(text, unit, names, functions)
    return tests


def _check_functions(text: str, unit: Unit, names: tuple[str, ...], functions: tuple[str, ...] | None) -> None:
    if functions is None:
        return
    for name, at in unit.calls.items():
        if name not in functions and name not in names:
            hint = suggest(name, (*BUILT_INS, *functions, *names)).removeprefix(". ")
            raise make_error(text, at, "the name of a function", f"there is no function '{name[:80]}'", hint)


def evaluate(
    text: str,
    context: Mapping[str, Any] | None = None,
    *,
    warnings: list[FeelWarning] | None = None,
    clock: Clock | None = None,
    random: Random | None = None,
    max_steps: int = MOST_STEPS,
    max_bytes: int = MOST_BYTES,
) -> Value:
    """The value of an expression; names of the context may have spaces and signs in them. Otherwise as `compile`."""
    _check_text(text)
    expression = _cached(text, _find_special(context))
    return expression.evaluate(
        context, warnings=warnings, clock=clock, random=random, max_steps=max_steps, max_bytes=max_bytes
    )


def unary_tests(
    text: str,
    value: Any,
    context: Mapping[str, Any] | None = None,
    *,
    warnings: list[FeelWarning] | None = None,
    clock: Clock | None = None,
    random: Random | None = None,
    max_steps: int = MOST_STEPS,
    max_bytes: int = MOST_BYTES,
) -> bool | None:
    """Whether a value meets unary tests; otherwise as `evaluate`."""
    _check_text(text)
    tests = _cached_tests(text, _find_special(context))
    return tests.evaluate(
        value, context, warnings=warnings, clock=clock, random=random, max_steps=max_steps, max_bytes=max_bytes
    )


@lru_cache(maxsize=_CACHED)
def _cached(text: str, names: frozenset[str]) -> Expression:
    return compile(text, names=names)


@lru_cache(maxsize=_CACHED)
def _cached_tests(text: str, names: frozenset[str]) -> UnaryTests:
    return compile_unary_tests(text, names=names)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise FeelError(f"Expected the text of an expression, but found {type(text).__name__}. Pass a str.")


def _find_special(context: Mapping[str, Any] | None) -> frozenset[str]:
    """The names in a context, also deep inside, that are more than one plain word."""
    found: set[str] = set()
    left = _MOST_NAMES
    waiting: list[Any] = [context] if isinstance(context, Mapping) else []
    while waiting and left > 0:
        value = waiting.pop()
        if isinstance(value, Mapping):
            left -= len(value)
            for key, inner in value.items():
                if isinstance(key, str) and not key.isidentifier():
                    found.add(key)
                if isinstance(inner, Mapping | list | tuple):
                    waiting.append(inner)
        else:
            left -= len(value)
            waiting.extend(one for one in value if isinstance(one, Mapping | list | tuple))
    return frozenset(found)
