"""Grammar of a cell of a decision table. DMN 10.3.1.2, unary tests: a test may be any expression."""

from __future__ import annotations

from holdfast.feel import syntax
from holdfast.feel.lexer import Kind, Token
from holdfast.feel.syntax import Node
from holdfast.feel.token_reader import TokenReader


def parse_cell(parser: TokenReader) -> Node:
    """The UnaryTests of a cell: `-`, or tests with commas between them, or `not(…)` around those."""
    begin = parser.lexer.peek()
    if parser.take("-"):
        if parser.lexer.peek().kind is Kind.END:
            return syntax.UnaryTests(begin.at, ())
        parser.lexer.move_to(begin.at)
    if begin.kind is Kind.NAME and begin.text == "not":
        negated = _parse_negated(parser, begin)
        if negated is not None:
            return negated
    return syntax.UnaryTests(begin.at, _parse_tests(parser))


def _parse_negated(parser: TokenReader, begin: Token) -> Node | None:
    """Tests inside of `not(…)`; None if it is the function of that name, and more follows it."""
    parser.lexer.next()
    if parser.take("("):
        tests = _parse_tests(parser)
        if parser.take(")") and parser.lexer.peek().kind is Kind.END:
            return syntax.UnaryTests(begin.at, tests, is_negated=True)
    parser.lexer.move_to(begin.at)
    return None


def _parse_tests(parser: TokenReader) -> tuple[Node, ...]:
    tests = [parser.expression()]
    while parser.take(","):
        tests.append(parser.expression())
    return tuple(tests)
