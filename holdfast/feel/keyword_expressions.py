"""Grammar of what begins with a keyword and goes on as far as it can: conditions, loops, quantifiers, functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.feel import syntax
from holdfast.feel.lexer import Token
from holdfast.feel.syntax import Node
from holdfast.feel.token_reader import Rule, TokenReader
from holdfast.feel.types import parse_type


def _parse_if(parser: TokenReader, token: Token) -> Node:
    condition = parser.expression()
    parser.expect("then", " after the condition")
    then = parser.expression()
    parser.expect("else", " after what is wanted then")
    return syntax.If(token.at, condition, then, parser.expression())


def _parse_for(parser: TokenReader, token: Token) -> Node:
    iterators = _parse_iterators(parser)
    parser.expect("return", " or ','")
    return syntax.For(token.at, iterators, parser.expression())


def _parse_quantified(parser: TokenReader, token: Token) -> Node:
    iterators = _parse_iterators(parser)
    parser.expect("satisfies", " or ','")
    return syntax.Quantified(token.at, token.text == "every", iterators, parser.expression())


def _parse_iterators(parser: TokenReader) -> tuple[syntax.Iterator, ...]:
    found: list[syntax.Iterator] = []
    while not found or parser.take(","):
        name = parser.lexer.read_iterated() or parser.expect_name()
        parser.expect("in", " after the name")
        start = parser.expression()
        end = parser.expression() if parser.take("..") else None
        parser.lexer.learn(name)
        found.append(syntax.Iterator(name, start, end))
    return tuple(found)


def _parse_function(parser: TokenReader, token: Token) -> Node:
    parser.expect("(", " after function")
    parameters: list[tuple[str, syntax.Type | None]] = []
    kind: syntax.Type | None
    while not parser.take(")"):
        if parameters and not parser.take(","):
            parser.fail(parser.lexer.peek(), "',' or ')'")
        key = parser.lexer.read_key()
        if key is not None:
            name, kind = key.text, parse_type(parser.lexer)
        else:
            name, kind = parser.lexer.read_parameter() or parser.expect_name(), None
        parser.lexer.learn(name)
        parameters.append((name, kind))
    is_external = parser.take("external") is not None
    return syntax.FunctionDefinition(token.at, tuple(parameters), parser.expression(), is_external)


PREFIXED: Final[Mapping[str, Rule]] = {
    "if": _parse_if,
    "for": _parse_for,
    "some": _parse_quantified,
    "every": _parse_quantified,
    "function": _parse_function,
}
"""Rules by the keyword that an expression begins with."""
