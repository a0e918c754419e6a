"""The text of a filter as tokens, each with its place."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

import msgspec

from holdfast.errors import FilterError

LONGEST_FILTER: Final = 10_000
"""How many characters a filter has at most."""

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<single>'(?:[^']|'')*')
  | (?P<double>"(?:[^"]|"")*")
  | (?P<word>[^\W\d][\w-]*)
  | (?P<sign><=|>=|!=|<>|[=<>(),.])
    """,
    re.VERBOSE,
)
_HINTS: Final = {
    "=": "Write one =, as in status = 'running'.",
    "'": "Close the text with ', and write '' for one inside it.",
}
_HINTS["&"], _HINTS["|"], _HINTS["!"] = "Write AND.", "Write OR.", "Write NOT, or != to compare."
_HINTS['"'] = 'Close the name with ".'


class Kind(Enum):
    """What kind of token it is: by this the parser goes."""

    NUMBER = auto()
    TEXT = auto()
    """In single quotes: always a value."""
    QUOTED = auto()
    """In double quotes: a name behind a dot, else a value."""
    WORD = auto()
    SIGN = auto()
    END = auto()


class Token(msgspec.Struct, frozen=True, gc=False):
    """A piece of a filter: `text` without its quotes, and where it begins."""

    kind: Kind
    text: str
    position: int

    @property
    def upper(self) -> str:
        """A word as keywords are compared, without regard to case; empty for what is no word."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def __str__(self) -> str:
        return "its end" if self.kind is Kind.END else f"'{self.text}'"


def split_filter(text: str, what: str = "where") -> list[Token]:
    """The tokens of a filter, the last of which is its end. Raises FilterError."""
    if not isinstance(text, str):
        raise FilterError(
            f"Expected {what}=… to be text, but it is {text!r:.100}. Write for instance \"status = 'running'\".", 0
        )
    if len(text) > LONGEST_FILTER:
        raise FilterError(f"Expected {what}=… to have at most {LONGEST_FILTER:,} characters, but it has {len(text):,}.", 0)
    tokens, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise FilterError.at(what, text, position, "a field, a value or an operator", _HINTS.get(text[position], ""))
        if found.lastgroup != "space":
            tokens.append(_make_token(found))
        position = found.end()
    if any("\ud800" <= one <= "\udfff" or one == "\0" for one in text):
        raise FilterError(f"Expected {what}=… to be valid Unicode without NUL, but it is {text!r:.100}.", 0)
    return [*tokens, Token(Kind.END, "", len(text))]


def _make_token(found: re.Match[str]) -> Token:
    text = found.group()
    match found.lastgroup:
        case "number":
            return Token(Kind.NUMBER, text, found.start())
        case "single":
            return Token(Kind.TEXT, text[1:-1].replace("''", "'"), found.start())
        case "double":
            return Token(Kind.QUOTED, text[1:-1].replace('""', '"'), found.start())
        case "word":
            return Token(Kind.WORD, text, found.start())
        case _:
            return Token(Kind.SIGN, "!=" if text == "<>" else text, found.start())
