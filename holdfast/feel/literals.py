"""Grammar of what stands in brackets, lists, ranges and contexts, and of dates and times behind an `@`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.feel import syntax
from holdfast.feel.lexer import Kind, Token
from holdfast.feel.syntax import Node
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.token_reader import Rule, TokenReader


def _parse_at_literal(parser: TokenReader, token: Token) -> Node:
    text = parser.lexer.peek()
    if text.kind is not Kind.STRING:
        parser.fail(text, "a string after '@'")
    literal = str(parser.lexer.next().value)
    value = parse_temporal(literal)
    return syntax.BadLiteral(token.at, literal[:80]) if value is None else syntax.Literal(token.at, value)


def _parse_parenthesis(parser: TokenReader, token: Token) -> Node:
    node = parser.expression()
    if parser.take(".."):
        return parse_range_end(parser, token, node, start_included=False)
    parser.expect(")")
    return node


def _parse_bracket(parser: TokenReader, token: Token) -> Node:
    close = parser.take("]")
    if close is not None:
        behind = parser.lexer.peek_operator().kind
        if behind not in (Kind.NUMBER, Kind.STRING, Kind.NAME) and not parser.is_next("@"):
            return syntax.ListLiteral(token.at, ())
        parser.lexer.move_to(close.at)  # no list ends there, but a range begins: `[]1..3[]`
    items = [parser.expression()]
    if parser.take(".."):
        return parse_range_end(parser, token, items[0], start_included=True)
    while parser.take(","):
        items.append(parser.expression())
    parser.expect("]", " or ','")
    return syntax.ListLiteral(token.at, tuple(items))


def _parse_open_range(parser: TokenReader, token: Token) -> Node:
    """A range that opens with `]`, such as `]1..3]`: its start is not part of it."""
    start = parser.expression()
    parser.expect("..", " of a range")
    return parse_range_end(parser, token, start, start_included=False)


def parse_range_end(parser: TokenReader, token: Token, start: Node, *, start_included: bool) -> Node:
    """The range that begins with `token`, from behind its `..` to the bracket that closes it."""
    end = parser.range_end()
    close = parser.take("]", ")", "[")
    if close is None:
        parser.fail(parser.lexer.peek(), "']', ')' or '[' after the range")
    return syntax.RangeLiteral(token.at, start, end, start_included, close.text == "]")


def _parse_context(parser: TokenReader, token: Token) -> Node:
    entries: dict[str, Node] = {}
    while not parser.take("}"):
        if entries and not parser.take(","):
            parser.fail(parser.lexer.peek(), "',' or '}'")
        key = parser.lexer.read_key()
        if key is None:
            parser.fail(parser.lexer.peek(), "a key with ':' behind it")
        if key.text in entries:
            parser.fail(key, "another key: this one stands before")
        entries[key.text] = parser.expression()
        parser.lexer.learn(key.text)
    return syntax.ContextLiteral(token.at, tuple(entries.items()))


ENCLOSED: Final[Mapping[str, Rule]] = {
    "(": _parse_parenthesis,
    "[": _parse_bracket,
    "]": _parse_open_range,
    "{": _parse_context,
    "@": _parse_at_literal,
}
"""Rules by the sign that an expression begins with."""
