"""From tokens to a tree, by precedence climbing. DMN 10.3.1.2 is the grammar; its rule 4 gives the order of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

from holdfast.errors import FeelLimitExceeded
from holdfast.feel import syntax
from holdfast.feel.lexer import Kind, Lexer, Token, describe
from holdfast.feel.syntax import Node
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.types import parse_type
from holdfast.feel.values import NUMBERS

DEEPEST: Final = 100
"""Expressions inside each other."""

_OR: Final = 1
_AND: Final = 2
_COMPARISON: Final = 3
_ADDITION: Final = 4
_MULTIPLICATION: Final = 5
_POWER: Final = 6
_BINDING: Final[Mapping[str, int]] = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "between", "in"), _COMPARISON),
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
    tests = _parse(text, names, _Parser.unary_tests)
    assert isinstance(tests, syntax.UnaryTests)  # noqa: S101 - what that method makes
    return tests


def _parse(text: str, names: Iterable[str], rule: Callable[[_Parser], Node]) -> Node:
    try:
        return _Parser(text, names).parse_all(rule)
    except RecursionError:
        raise FeelLimitExceeded(
            "Expected an expression that fits on the stack, but it is nested too deeply. Take it apart."
        ) from None


class _Parser:
    """Parses one text."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        self._lexer = Lexer(text, names)
        self._depth = 0

    def parse_all(self, rule: Callable[[_Parser], Node]) -> Node:
        node = rule(self)
        token = self._lexer.peek()
        if token.kind is not Kind.END:
            self._fail(token, "an operator or the end")
        return node

    # --- tokens ---

    def _fail(self, token: Token, expected: str) -> NoReturn:
        raise self._lexer.error(token.at, expected, describe(token))

    def _is_next(self, *texts: str) -> bool:
        token = self._lexer.peek()
        return token.kind in (Kind.OPERATOR, Kind.KEYWORD) and token.text in texts

    def _take(self, *texts: str) -> Token | None:
        return self._lexer.next() if self._is_next(*texts) else None

    def _expect(self, text: str, why: str = "") -> Token:
        token = self._take(text)
        if token is None:
            self._fail(self._lexer.peek(), f"{text!r}{why}")
        return token

    def _expect_name(self) -> str:
        token = self._lexer.peek()
        if token.kind is not Kind.NAME:
            self._fail(token, "a name")
        return self._lexer.next().text

    # --- expressions ---

    def expression(self) -> Node:
        """Any expression."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise FeelLimitExceeded(
                f"Expected expressions at most {DEEPEST} deep inside each other, but they are deeper. Take it apart."
            )
        token = self._lexer.peek()
        rule = _PREFIXED.get(token.text) if token.kind is Kind.KEYWORD else None
        node = self._operation(_OR) if rule is None else rule(self, self._lexer.next())
        self._depth -= 1
        return node

    def _operation(self, level: int) -> Node:
        """An expression whose operators bind at least as strongly as `level`."""
        token = self._lexer.peek()
        rule = _PREFIXED.get(token.text) if token.kind is Kind.KEYWORD else None
        left = self._unary() if rule is None else rule(self, self._lexer.next())
        return self._operate(left, level)

    def _operate(self, left: Node, level: int) -> Node:
        """The same, its first operand in hand."""
        chained = 0
        while True:
            token = self._lexer.peek_operator()
            binding = _BINDING.get(token.text, 0) if token.kind in (Kind.OPERATOR, Kind.KEYWORD) else 0
            if binding < level or binding == 0:
                return left
            chained += 1
            if chained > DEEPEST and binding not in (_AND, _OR):
                raise FeelLimitExceeded(
                    f"Expected at most {DEEPEST} operators in a row, but there are more. Use sum() or string join()."
                )
            self._lexer.next()
            left = self._join(left, token, binding)

    def _join(self, left: Node, token: Token, binding: int) -> Node:
        """What an operator makes of its left side and of what follows it."""
        operator = token.text
        if binding <= _AND:
            right = self._operation(binding + 1)
            operands = [left, right]
            while self._take(operator):
                operands.append(self._operation(binding + 1))
            return syntax.Logic(left.at, operator, tuple(operands))
        if operator == "between":
            low = self._operation(_ADDITION)
            self._expect("and", " of between … and …")
            return syntax.Between(left.at, left, low, self._operation(_ADDITION))
        if operator == "in":
            return syntax.In(left.at, left, self._in_tests())
        right = self._operation(binding + 1)
        if operator in _COMPARISONS:
            return syntax.Comparison(left.at, operator, left, right)
        return syntax.Arithmetic(left.at, operator, left, right)

    def _unary(self) -> Node:
        """Negation, which binds more strongly than powers, then `instance of`."""
        minus = self._take("-")
        if minus is not None and self._lexer.peek().kind is Kind.NUMBER:  # the sign is part of a number
            return self._postfix(syntax.Literal(minus.at, NUMBERS.minus(self._lexer.next().value)))  # type: ignore[arg-type]
        if minus is not None:
            self._depth += 1
            if self._depth > DEEPEST:
                raise FeelLimitExceeded(f"Expected at most {DEEPEST} signs in a row, but there are more. Take some away.")
            operand = self._unary()
            self._depth -= 1
            return syntax.Negation(minus.at, operand)
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        """Paths, filters and invocations; then `instance of`."""
        node = self._steps(node)
        while self._take("instance"):
            self._expect("of", " of instance of")
            node = syntax.InstanceOf(node.at, node, parse_type(self._lexer))
        return node

    def _steps(self, node: Node) -> Node:
        count = 0
        while True:
            count += 1
            if count > DEEPEST:
                raise FeelLimitExceeded(f"Expected at most {DEEPEST} steps of a path, but there are more. Take it apart.")
            if self._take("."):
                node = syntax.Path(node.at, node, self._lexer.read_property().text)
            elif self._is_next("[") and not self._is_closing_bracket():
                self._lexer.next()
                condition = self.expression()
                self._expect("]", " after the filter")
                node = syntax.Filter(node.at, node, condition)
            elif self._take("("):
                node = self._invocation(node)
            else:
                return node

    def _is_closing_bracket(self) -> bool:
        """Whether a `[` ends a range, as in `]1..3[`: what follows cannot begin an expression."""
        bracket = self._lexer.next()
        token = self._lexer.peek()
        closes = token.kind is Kind.END or (
            token.kind in (Kind.OPERATOR, Kind.KEYWORD)
            and token.text not in _PREFIXED
            and token.text not in _CONSTANTS
            and token.text not in ("(", "[", "{", "]", "-", "@", "<", "<=", ">", ">=", "=", "!=")
        )
        if token.kind is Kind.OPERATOR and token.text == "]":
            closes = True
        self._lexer.move_to(bracket.at)
        return closes

    def _invocation(self, function: Node) -> Node:
        positional: list[Node] = []
        named: list[tuple[str, Node]] = []
        while not self._take(")"):
            if (positional or named) and not self._take(","):
                self._fail(self._lexer.peek(), "',' or ')'")
            key = self._lexer.read_key() if not positional else None
            if key is not None:
                named.append((key.text, self.expression()))
            elif named:
                self._fail(self._lexer.peek(), "a named argument, like those before it")
            else:
                positional.append(self.expression())
        return syntax.Invocation(function.at, function, tuple(positional), tuple(named))

    # --- what stands by itself ---

    def _primary(self) -> Node:
        token = self._lexer.peek()
        if token.kind in (Kind.NUMBER, Kind.STRING):
            self._lexer.next()
            return syntax.Literal(token.at, token.value)
        if token.kind is Kind.NAME:
            self._lexer.next()
            return syntax.Name(token.at, token.text)
        if token.kind is Kind.KEYWORD and token.text in _CONSTANTS:
            self._lexer.next()
            return syntax.Literal(token.at, _CONSTANTS[token.text])
        if token.kind is Kind.KEYWORD and token.text in _LOGICAL:
            self._lexer.next()
            if self._is_next("("):
                return syntax.Name(token.at, _LOGICAL[token.text])
            self._fail(token, "an expression")
        rule = _ENCLOSED.get(token.text) if token.kind is Kind.OPERATOR else None
        if rule is None:
            self._fail(token, "an expression")
        return rule(self, self._lexer.next())

    def _at_literal(self, token: Token) -> Node:
        text = self._lexer.peek()
        if text.kind is not Kind.STRING:
            self._fail(text, "a string after '@'")
        literal = str(self._lexer.next().value)
        value = parse_temporal(literal)
        return syntax.BadLiteral(token.at, literal[:80]) if value is None else syntax.Literal(token.at, value)

    def _parenthesis(self, token: Token) -> Node:
        node = self.expression()
        if self._take(".."):
            return self._range_end(token, node, start_included=False)
        self._expect(")")
        return node

    def _bracket(self, token: Token) -> Node:
        close = self._take("]")
        if close is not None:
            behind = self._lexer.peek_operator().kind
            if behind not in (Kind.NUMBER, Kind.STRING, Kind.NAME) and not self._is_next("@"):
                return syntax.ListLiteral(token.at, ())
            self._lexer.move_to(close.at)  # no list ends there, but a range begins: `[]1..3[]`
        items = [self.expression()]
        if self._take(".."):
            return self._range_end(token, items[0], start_included=True)
        while self._take(","):
            items.append(self.expression())
        self._expect("]", " or ','")
        return syntax.ListLiteral(token.at, tuple(items))

    def _open_range(self, token: Token) -> Node:
        """`]1..3]`: without its start."""
        start = self.expression()
        self._expect("..", " of a range")
        return self._range_end(token, start, start_included=False)

    def _range_end(self, token: Token, start: Node, *, start_included: bool) -> Node:
        end = self.expression()
        close = self._take("]", ")", "[")
        if close is None:
            self._fail(self._lexer.peek(), "']', ')' or '[' after the range")
        return syntax.RangeLiteral(token.at, start, end, start_included, close.text == "]")

    def _context(self, token: Token) -> Node:
        entries: dict[str, Node] = {}
        while not self._take("}"):
            if entries and not self._take(","):
                self._fail(self._lexer.peek(), "',' or '}'")
            key = self._lexer.read_key()
            if key is None:
                self._fail(self._lexer.peek(), "a key with ':' behind it")
            if key.text in entries:
                self._fail(key, "another key: this one stands before")
            entries[key.text] = self.expression()
            self._lexer.learn(key.text)
        return syntax.ContextLiteral(token.at, tuple(entries.items()))

    def _comparison_test(self, token: Token) -> Node:
        """`< 5`: all numbers below 5, as a range; in tests, a test of `?`."""
        return syntax.ComparisonTest(token.at, token.text, self._operation(_ADDITION))

    # --- what begins with a keyword, and goes on as far as it can ---

    def _if(self, token: Token) -> Node:
        condition = self.expression()
        self._expect("then", " after the condition")
        then = self.expression()
        self._expect("else", " after what is wanted then")
        return syntax.If(token.at, condition, then, self.expression())

    def _for(self, token: Token) -> Node:
        iterators = self._iterators()
        self._expect("return", " or ','")
        return syntax.For(token.at, iterators, self.expression())

    def _quantified(self, token: Token) -> Node:
        iterators = self._iterators()
        self._expect("satisfies", " or ','")
        return syntax.Quantified(token.at, token.text == "every", iterators, self.expression())

    def _iterators(self) -> tuple[syntax.Iterator, ...]:
        found: list[syntax.Iterator] = []
        while not found or self._take(","):
            name = self._lexer.read_iterated() or self._expect_name()
            self._expect("in", " after the name")
            start = self.expression()
            end = self.expression() if self._take("..") else None
            self._lexer.learn(name)
            found.append(syntax.Iterator(name, start, end))
        return tuple(found)

    def _function(self, token: Token) -> Node:
        self._expect("(", " after function")
        parameters: list[tuple[str, syntax.Type | None]] = []
        kind: syntax.Type | None
        while not self._take(")"):
            if parameters and not self._take(","):
                self._fail(self._lexer.peek(), "',' or ')'")
            key = self._lexer.read_key()
            if key is not None:
                name, kind = key.text, parse_type(self._lexer)
            else:
                name, kind = self._lexer.read_parameter() or self._expect_name(), None
            self._lexer.learn(name)
            parameters.append((name, kind))
        is_external = self._take("external") is not None
        return syntax.FunctionDefinition(token.at, tuple(parameters), self.expression(), is_external)

    # --- tests ---

    def _in_tests(self) -> tuple[Node, ...]:
        """What stands behind `in`: one test, or several in parentheses."""
        begin = self._take("(")
        if begin is None:
            return (self._operation(_ADDITION),)
        tests = [self.expression()]
        if self._take(".."):
            return (self._go_on(self._range_end(begin, tests[0], start_included=False)),)
        while self._take(","):
            tests.append(self.expression())
        self._expect(")", " or ','")
        return (self._go_on(tests[0]),) if len(tests) == 1 else tuple(tests)

    def _go_on(self, node: Node) -> Node:
        """A test of which the first part is in hand: `(1) + 2`, `(1..2)`."""
        return self._operate(self._postfix(node), _ADDITION)

    def unary_tests(self) -> Node:
        """`-`, or tests with commas between them, or `not(…)` around those."""
        begin = self._lexer.peek()
        if self._take("-"):
            if self._lexer.peek().kind is Kind.END:
                return syntax.UnaryTests(begin.at, ())
            self._lexer.move_to(begin.at)
        if begin.kind is Kind.NAME and begin.text == "not":
            negated = self._negated_tests(begin)
            if negated is not None:
                return negated
        return syntax.UnaryTests(begin.at, self._tests())

    def _negated_tests(self, begin: Token) -> Node | None:
        self._lexer.next()
        if self._take("("):
            tests = self._tests()
            if self._take(")") and self._lexer.peek().kind is Kind.END:
                return syntax.UnaryTests(begin.at, tests, is_negated=True)
        self._lexer.move_to(begin.at)
        return None

    def _tests(self) -> tuple[Node, ...]:
        tests = [self.expression()]
        while self._take(","):
            tests.append(self.expression())
        return tuple(tests)


Rule = Callable[[_Parser, Token], Node]
_PREFIXED: Final[Mapping[str, Rule]] = {
    "if": _Parser._if,
    "for": _Parser._for,
    "some": _Parser._quantified,
    "every": _Parser._quantified,
    "function": _Parser._function,
}
_ENCLOSED: Final[Mapping[str, Rule]] = {
    "(": _Parser._parenthesis,
    "[": _Parser._bracket,
    "]": _Parser._open_range,
    "{": _Parser._context,
    "@": _Parser._at_literal,
    **dict.fromkeys(_COMPARISONS, _Parser._comparison_test),
}
