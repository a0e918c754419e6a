"""The tokens of one text, as the rules of the grammar take them; what the files with rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeAlias

from holdfast.feel.lexer import Kind, Lexer, Token, describe
from holdfast.feel.mistakes import hint_at
from holdfast.feel.syntax import Node


class TokenReader(ABC):
    """Asks for the tokens of one text by what they say, and refuses any other with a FeelSyntaxError."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        self.lexer = Lexer(text, names)

    @abstractmethod
    def expression(self) -> Node:
        """Any expression that begins with the next token. Rules call it for their parts. Raises FeelLimitExceeded."""

    @abstractmethod
    def range_end(self) -> Node:
        """As `expression`, of the end of a range, behind which a `[` may close it: `]1..3[`."""

    def fail(self, token: Token, expected: str) -> NoReturn:
        """Refuse a token where the grammar wants something else, which is `expected`. Raises FeelSyntaxError."""
        raise self.lexer.error(token.at, expected, describe(token), hint_at(token.text))

    def is_next(self, *texts: str) -> bool:
        """Whether the next token is one of these operators or keywords; it stays where it is."""
        token = self.lexer.peek()
        return token.kind in (Kind.OPERATOR, Kind.KEYWORD) and token.text in texts

    def take(self, *texts: str) -> Token | None:
        """The next token if it is one of these operators or keywords, which is then behind us; else None."""
        return self.lexer.next() if self.is_next(*texts) else None

    def expect(self, text: str, why: str = "") -> Token:
        """As `take`, of one that must stand here; `why` says in the error what it belongs to. Raises FeelSyntaxError."""
        token = self.take(text)
        if token is None:
            self.fail(self.lexer.peek(), f"{text!r}{why}")
        return token

    def expect_name(self) -> str:
        """The name that must stand here, which is then behind us. Raises FeelSyntaxError."""
        token = self.lexer.peek()
        if token.kind is not Kind.NAME:
            self.fail(token, "a name")
        return self.lexer.next().text


Rule: TypeAlias = Callable[[TokenReader, Token], Node]
"""Parses what begins with a token that was just taken."""
