"""From tokens to a tree, by precedence climbing. DMN 10.3.1.2 is the grammar; its rule 4 gives the order of operators.

Here are operators, paths, filters and invocations; what begins with a keyword is in `keyword_expressions`, with a bracket
or `@` in `literals`, and the cell of a decision table in `unary_tests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from holdfast.errors import FeelLimitExceeded
from holdfast.feel import syntax
from holdfast.feel.keyword_expressions import PREFIXED
from holdfast.feel.lexer import Kind, Token, describe
from holdfast.feel.literals import ENCLOSED, parse_range_end
from holdfast.feel.mistakes import find_comparison, hint_in_name
from holdfast.feel.syntax import Node
from holdfast.feel.token_reader import TokenReader
from holdfast.feel.types import parse_type
from holdfast.feel.unary_tests import parse_cell
from holdfast.feel.values import NUMBERS

DEEPEST: Final = 100
"""Expressions inside each other."""

_OR: Final = 1
_AND: Final = 2
_COMPARISON: Final = 3
_INSTANCE: Final = 4
_ADDITION: Final = 5
_MULTIPLICATION: Final = 6
_POWER: Final = 7
_BINDING: Final[Mapping[str, int]] = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "between", "in"), _COMPARISON),
    "instance": _INSTANCE,
    "+": _ADDITION,
    "-": _ADDITION,
    "*": _MULTIPLICATION,
    "/": _MULTIPLICATION,
    "**": _POWER,
}
_COMPARISONS: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_LOGICAL: Final = {"and": "all", "or": "any"}
"""Camunda: `and([true, false])` is the old name of `all`."""


def parse_expression(text: str, names: Iterable[str] = ()) -> Node:
    """The tree of an expression. `names` are those that it may use with spaces or signs in them. Raises FeelSyntaxError."""
    return _parse(text, names, _Parser.expression)


def parse_unary_tests(text: str, names: Iterable[str] = ()) -> syntax.UnaryTests:
    """The tree of a cell of a decision table. Raises FeelSyntaxError."""
    tests = _parse(text, names, parse_cell)
    assert isinstance(tests, syntax.UnaryTests)  # noqa: S101 - what that rule makes
    return tests


def _parse(text: str, names: Iterable[str], rule: Callable[[_Parser], Node]) -> Node:
    try:
        return _Parser(text, names).parse_all(rule)
    except RecursionError:
        raise FeelLimitExceeded(
            "Expected an expression that fits on the stack, but it is nested too deeply. Take it apart."
        ) from None


class _Parser(TokenReader):
    """Parses one text: operators by how strongly they bind, and what stands by itself between them."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        super().__init__(text, names)
        self._depth = 0
        self._ends_range = False

    def parse_all(self, rule: Callable[[_Parser], Node]) -> Node:
        node = rule(self)
        token = self.lexer.peek()
        if token.kind is not Kind.END:
            self.fail(token, "an operator or the end")
        return node

    # --- expressions ---

    def expression(self) -> Node:
        outer, self._ends_range = self._ends_range, False
        node = self._nested()
        self._ends_range = outer
        return node

    def range_end(self) -> Node:
        outer, self._ends_range = self._ends_range, True
        node = self._nested()
        self._ends_range = outer
        return node

    def _nested(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise FeelLimitExceeded(
                f"Expected expressions at most {DEEPEST} deep inside each other, but they are deeper. Take it apart."
            )
        token = self.lexer.peek()
        rule = PREFIXED.get(token.text) if token.kind is Kind.KEYWORD else None
        node = self._operation(_OR) if rule is None else rule(self, self.lexer.next())
        self._depth -= 1
        return node

    def _operation(self, level: int) -> Node:
        """An expression whose operators bind at least as strongly as `level`."""
        token = self.lexer.peek()
        rule = PREFIXED.get(token.text) if token.kind is Kind.KEYWORD else None
        left = self._unary() if rule is None else rule(self, self.lexer.next())
        return self._operate(left, level)

    def _operate(self, left: Node, level: int) -> Node:
        """The same, its first operand in hand."""
        chained = 0
        while True:
            token = self.lexer.peek_operator()
            binding = _BINDING.get(token.text, 0) if token.kind in (Kind.OPERATOR, Kind.KEYWORD) else 0
            if binding < level or binding == 0:
                return left
            chained += 1
            if chained > DEEPEST and binding not in (_AND, _OR):
                raise FeelLimitExceeded(
                    f"Expected at most {DEEPEST} operators in a row, but there are more. Use sum() or string join()."
                )
            self.lexer.next()
            if binding == _COMPARISON:
                self._check_comparison(token)
            left = self._join(left, token, binding)

    def _join(self, left: Node, token: Token, binding: int) -> Node:
        """What an operator makes of its left side and of what follows it."""
        operator = token.text
        if binding <= _AND:
            right = self._operation(binding + 1)
            operands = [left, right]
            while self.take(operator):
                operands.append(self._operation(binding + 1))
            return syntax.Logic(left.at, operator, tuple(operands))
        if operator == "between":
            low = self._operation(_INSTANCE)
            self.expect("and", " of between … and …")
            return syntax.Between(left.at, left, low, self._operation(_INSTANCE))
        if operator == "in":
            return syntax.In(left.at, left, self._in_tests())
        if operator == "instance":
            self.expect("of", " of instance of")
            return syntax.InstanceOf(left.at, left, parse_type(self.lexer))
        right = self._operation(binding + 1)
        if operator in _COMPARISONS:
            return syntax.Comparison(left.at, operator, left, right)
        return syntax.Arithmetic(left.at, operator, left, right)

    def _unary(self) -> Node:
        """Negation, which binds more strongly than powers."""
        minus = self.take("-")
        if minus is not None and self.lexer.peek().kind is Kind.NUMBER:  # the sign is part of a number
            return self._steps(syntax.Literal(minus.at, NUMBERS.minus(self.lexer.next().value)))  # type: ignore[arg-type]
        if minus is not None:
            self._depth += 1
            if self._depth > DEEPEST:
                raise FeelLimitExceeded(f"Expected at most {DEEPEST} signs in a row, but there are more. Take some away.")
            operand = self._unary()
            self._depth -= 1
            return syntax.Negation(minus.at, operand)
        return self._steps(self._primary())

    def _steps(self, node: Node) -> Node:
        """Read the paths, filters and invocations that follow an expression."""
        count = 0
        while True:
            count += 1
            if count > DEEPEST:
                raise FeelLimitExceeded(f"Expected at most {DEEPEST} steps of a path, but there are more. Take it apart.")
            if self.take("."):
                entry = self.lexer.read_property()
                self._check_words(entry, is_entry=True)
                node = syntax.Path(node.at, node, entry.text)
            elif self.is_next("[") and not self._is_closing_bracket():
                self.lexer.next()
                condition = self.expression()
                self.expect("]", " after the filter")
                node = syntax.Filter(node.at, node, condition)
            elif self.take("("):
                node = self._invocation(node)
            else:
                return node

    def _is_closing_bracket(self) -> bool:
        """Whether a `[` ends a range, as in `]1..3[`: what follows cannot begin an expression."""
        if not self._ends_range:
            return False
        bracket = self.lexer.next()
        token = self.lexer.peek()
        closes = token.kind is Kind.END or (
            token.kind in (Kind.OPERATOR, Kind.KEYWORD)
            and token.text not in PREFIXED
            and token.text not in _CONSTANTS
            and token.text not in ("(", "[", "{", "-", "@")
        )
        self.lexer.move_to(bracket.at)
        return closes

    def _invocation(self, function: Node) -> Node:
        positional: list[Node] = []
        named: dict[str, Node] = {}
        while not self.take(")"):
            if (positional or named) and not self.take(","):
                self.fail(self.lexer.peek(), "',' or ')'")
            key = self.lexer.read_key() if not positional else None
            if key is not None and key.text in named:
                self.fail(key, "the name of another parameter: this one stands before")
            if key is not None:
                named[key.text] = self.expression()
            elif named:
                self.fail(self.lexer.peek(), "a named argument, like those before it")
            else:
                positional.append(self.expression())
        return syntax.Invocation(function.at, function, tuple(positional), tuple(named.items()))

    # --- what stands by itself ---

    def _primary(self) -> Node:
        token = self.lexer.peek()
        if token.kind in (Kind.NUMBER, Kind.STRING):
            self.lexer.next()
            return syntax.Literal(token.at, token.value)
        if token.kind is Kind.NAME:
            self.lexer.next()
            self._check_words(token)
            return syntax.Name(token.at, token.text)
        if token.kind is Kind.KEYWORD and token.text in _CONSTANTS:
            self.lexer.next()
            return syntax.Literal(token.at, _CONSTANTS[token.text])
        if token.kind is Kind.KEYWORD and token.text in _LOGICAL:
            self.lexer.next()
            if self.is_next("("):
                return syntax.Name(token.at, _LOGICAL[token.text])
            self.fail(token, "an expression")
        rule = _SIGNED.get(token.text) if token.kind is Kind.OPERATOR else None
        if rule is None:
            self.fail(token, "an expression")
        return rule(self, self.lexer.next())

    def _comparison_test(self, token: Token) -> Node:
        """`< 5`: all numbers below 5, as a range; in tests, a test of `?`."""
        self._check_comparison(token)
        return syntax.ComparisonTest(token.at, token.text, self._operation(_INSTANCE))

    # --- mistakes ---

    def _check_comparison(self, token: Token) -> None:
        """Refuse `==` and its like, which would be a comparison with a range otherwise. Raises FeelSyntaxError."""
        mistake = find_comparison(self.lexer.text, token.at)
        if mistake is not None:
            sign, hint = mistake
            raise self.lexer.error(token.at, "a comparison", f"there is {sign!r}", hint)

    def _check_words(self, token: Token, *, is_entry: bool = False) -> None:
        """Refuse `not a` and `a is null`, which would be names otherwise, unless they are declared or quoted."""
        hint = ""
        if self.lexer.text.startswith("`", token.at):
            return
        if " " in token.text and not self.lexer.knows(token.text):
            hint = hint_in_name(token.text, is_entry=is_entry)
        elif token.text == "not" and not is_entry and self.lexer.peek().kind in (Kind.NUMBER, Kind.STRING):
            hint = "Write not(…) around what is negated"
        if hint:
            raise self.lexer.error(token.at, "a name or an operator", describe(token), hint)

    # --- what stands behind `in` ---

    def _in_tests(self) -> tuple[Node, ...]:
        """One test, or several in parentheses."""
        begin = self.take("(")
        if begin is None:
            return (self._compare_input(self._operation(_INSTANCE)),)
        tests = [self.expression()]
        if self.take(".."):
            return (self._go_on(parse_range_end(self, begin, tests[0], start_included=False)),)
        while self.take(","):
            tests.append(self.expression())
        self.expect(")", " or ','")
        return (self._go_on(tests[0]),) if len(tests) == 1 else tuple(tests)

    def _go_on(self, node: Node) -> Node:
        """A test of which the first part is in hand: `(1) + 2`, `(1..2)`."""
        return self._compare_input(self._operate(self._steps(node), _INSTANCE))

    def _compare_input(self, node: Node) -> Node:
        """`5 in ? < 10`: a comparison with `?` is the test; one with anything else has the `in` on its left side."""
        is_compared = _BINDING.get(self.lexer.peek_operator().text) == _COMPARISON
        return self._operate(node, _COMPARISON) if is_compared and _uses_input(node) else node


def _uses_input(part: object) -> bool:
    """Whether `?` is in it, other than behind an `in` of its own."""
    if isinstance(part, syntax.Name):
        return part.name == "?"
    if isinstance(part, syntax.In):
        return _uses_input(part.operand)
    if isinstance(part, tuple):
        return any(map(_uses_input, part))
    return isinstance(part, Node | syntax.Iterator) and any(
        _uses_input(getattr(part, name)) for name in part.__dataclass_fields__
    )


_SIGNED: Final[Mapping[str, Callable[[_Parser, Token], Node]]] = {
    **ENCLOSED,
    **dict.fromkeys(_COMPARISONS, _Parser._comparison_test),
}
"""Rules by the sign that an expression begins with."""
