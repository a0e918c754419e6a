"""From text to tokens, one at a time: what is a name depends on the names that are known by then."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import Final

from holdfast.errors import FeelLimitExceeded, FeelSyntaxError
from holdfast.feel.mistakes import find_sign
from holdfast.feel.surrogates import find_surrogate, join_pairs
from holdfast.feel.values import NUMBERS

LONGEST_TEXT: Final = 200_000
"""Characters of an expression."""

KEYWORDS: Final = frozenset(
    [
        "if",
        "then",
        "else",
        "for",
        "in",
        "return",
        "some",
        "every",
        "satisfies",
        "and",
        "or",
        "between",
        "instance",
        "of",
        "function",
        "external",
        "true",
        "false",
        "null",
    ]
)
_ENDING: Final = frozenset(["and", "or", "between", "in", "instance", "then", "else", "return", "satisfies"])
"""Keywords that can follow an expression, and so end a name of several words."""

_BLANK: Final = r"\s\u0085\u180E\u200B\uFEFF"
"""DMN 10.3.1.2, rules 61 and 62: white space; that which Python does not take for space by itself is named."""
# DMN 10.3.1.2, grammar rules 27 to 29: name start char and name part char, without the white space among them.
_START: Final = (
    r"?A-Z_a-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u167F\u1681-\u180D\u180F-\u1FFF\u200C-\u200D"
    r"\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFEFE\uFF00-\uFFFD\U00010000-\U000EFFFF"
)
_PART: Final = _START + r"0-9\u00B7\u0300-\u036F\u203F-\u2040"
_WORD: Final = re.compile(f"[{_START}][{_PART}]*")
_PARTS: Final = re.compile(f"[{_PART}]+")
_PART_AT: Final = re.compile(f"[{_PART}]")
_NUMBER: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_OPERATOR: Final = re.compile(r"\*\*|\.\.|->|!=|<=|>=|[-+*/=<>()\[\]{},:.@]")
_GAP: Final = re.compile(f"[{_BLANK}]+")
_SPACE: Final = re.compile(rf"(?:[{_BLANK}]+|//[^\n\r]*|/\*.*?\*/)+", re.DOTALL)
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{6})|(.))", re.DOTALL)
_ESCAPED: Final = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
"""DMN 10.3.1.2, rule 64; the last two are Java's, and so Camunda's."""
_QUOTED: Final = re.compile(r"`([^`]+)`")
_SIGNED: Final = rf"(?:[{_PART}\-+*'\u2019.]|/(?![*/]))"
_LONG_NAME: Final = re.compile(rf"[{_START}](?:[{_BLANK}]*+{_SIGNED})*+")
"""A name with any of the signs in it, where what follows tells that it is one. DMN 10.3.1.2, rules 27 and 30."""
_ITERATED: Final = re.compile(rf"[{_START}](?:[{_BLANK}]*+{_SIGNED})*?(?=[{_BLANK}]+in\b)")


_BUILT_IN: Final[Mapping[str, Sequence[str]]] = {
    name.split()[0]: (name,)
    for name in ("date and time", "days and time duration", "years and months duration", "get or else")
}
"""Names of the language with keywords in them, by their first words."""


class Kind(Enum):
    """What a token is; END stands behind the last one."""

    NUMBER = auto()
    STRING = auto()
    NAME = auto()
    KEYWORD = auto()
    OPERATOR = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text` is its name or sign; `value` that of a literal. `at` to `end` is where it stands."""

    kind: Kind
    text: str
    at: int
    end: int
    value: Decimal | str | None = None


class Lexer:
    """Reads one text. `at` is where it stands."""

    def __init__(self, text: str, names: Iterable[str] = ()) -> None:
        if len(text) > LONGEST_TEXT:
            raise FeelLimitExceeded(
                f"Expected an expression of at most {LONGEST_TEXT:,} characters, but it has {len(text):,}. Make it shorter."
            )
        self.text = text
        self.at = 0
        half = find_surrogate(text)
        if half is not None:
            raise self.error(half, "a character", f"there is U+{ord(text[half]):X}, which is half of a surrogate pair")
        self._special: dict[str, list[str]] = {}
        self._known: dict[str, str] = {}
        for name in names:
            self.learn(name)
        self._peeked: Token | None = None

    def learn(self, name: str) -> None:
        """From now on this is a name, also with spaces, signs or keywords in it."""
        words = split_words(name)
        if self._known.get(name) == name or not words or name in KEYWORDS or _WORD.fullmatch(name):
            return
        joined = " ".join(words)
        self._known[name] = self._known[joined] = name
        first = _WORD.match(words[0])
        if first is not None:
            candidates = self._special.setdefault(first.group(), list(_BUILT_IN.get(first.group(), ())))
            insort(candidates, joined, key=lambda one: -len(one))
        self._peeked = None

    def knows(self, name: str) -> bool:
        """Whether somebody declared a name that is more than one plain word."""
        return name in self._known

    def _spell(self, name: str) -> str:
        """A name as it was learned: with whatever space between its words. DMN 10.3.1.5: it is the words that count."""
        return self._known.get(name) or self._known.get(" ".join(split_words(name)), name)

    # --- tokens ---

    def peek(self) -> Token:
        """The next token, which stays the next one. Raises FeelSyntaxError if there can be none."""
        if self._peeked is None:
            self._peeked = self._read()
        return self._peeked

    def peek_operator(self) -> Token:
        """The next token where an operand has ended: a keyword that can stand there is one, even if names begin with it."""
        token = self.peek()
        if token.kind is Kind.NAME:
            word = _WORD.match(self.text, token.at)
            if word is not None and word.group() in _ENDING:
                self._peeked = token = Token(Kind.KEYWORD, word.group(), token.at, word.end())
        return token

    def next(self) -> Token:
        """The next token, and go on behind it."""
        token = self.peek()
        self.at, self._peeked = token.end, None
        return token

    def move_to(self, at: int) -> None:
        """Go on at an offset, before or behind the present one; what was peeked is forgotten."""
        self.at, self._peeked = at, None

    def skip_space(self) -> int:
        """The offset at which the next token begins, behind spaces and comments."""
        return self._find_next(self.at)

    def _read(self) -> Token:
        at = self.skip_space()
        text = self.text
        if at >= len(text):
            return Token(Kind.END, "", at, at)
        found = _WORD.match(text, at)
        if found is not None:
            return self._read_word(at, found.group(), found.end())
        found = _NUMBER.match(text, at)
        if found is not None:
            return self._read_number(at, found)
        char = text[at]
        if char == '"':
            return self._read_string(at)
        if char == "`":
            found = _QUOTED.match(text, at)
            if found is not None:
                return Token(Kind.NAME, self._spell(found.group(1)), at, found.end())
        if text.startswith("/*", at):
            raise self.error(at, "*/", "the comment does not end")
        found = _OPERATOR.match(text, at)
        if found is None:
            sign, hint = find_sign(text, at) or (char, "")
            raise self.error(at, "an expression", f"{sign!r} is no part of one", hint)
        return Token(Kind.OPERATOR, found.group(), at, found.end())

    def _read_number(self, at: int, found: re.Match[str]) -> Token:
        digits = found.group()
        if digits.endswith(".") or self.text.startswith("..", found.end() - 1):
            digits = digits.rstrip(".")
        value = NUMBERS.create_decimal(digits)
        if not value.is_finite():
            raise self.error(at, "a number below 10**6145", f"{digits[:40]} is larger")
        return Token(Kind.NUMBER, digits, at, found.end(), value)

    def _read_string(self, at: int) -> Token:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.error(at, 'a closing "', "the string does not end")
        return Token(Kind.STRING, found.group(), at, found.end(), self._unescape(found))

    def _unescape(self, found: re.Match[str]) -> str:
        text = unescape(found.group(1))
        half = find_surrogate(text)
        if half is not None:
            shown = f"U+{ord(text[half]):X}"
            raise self.error(found.start(), "a string of characters", f"{shown} in it is half of a surrogate pair")
        return text

    def _read_word(self, at: int, word: str, end: int) -> Token:
        for name in self._special.get(word) or _BUILT_IN.get(word, ()):
            behind = self._match_name(name, at)
            if behind is not None:
                return Token(Kind.NAME, self._known.get(name, name), at, behind)
        if word in KEYWORDS:
            return Token(Kind.KEYWORD, word, at, end)
        return self._join_words(at, word, end)

    def _match_name(self, name: str, at: int) -> int | None:
        """Where a name ends that stands here, with whatever space between its words; None if another stands here.

        DMN 10.3.1.5: around signs there may be none. `a+b` is the name `a + b`, if that is one.
        """
        text = self.text
        last = ""
        for word in name.split(" "):
            if last:
                gap = _GAP.match(text, at)
                if gap is not None:
                    at = gap.end()
                elif _PART_AT.match(last) and _PART_AT.match(word):
                    return None
            if not text.startswith(word, at):
                return None
            at += len(word)
            last = word[-1]
        is_cut = _PART_AT.match(name[-1]) is not None and _PART_AT.match(text, at) is not None
        return None if is_cut else at

    def _join_words(self, at: int, word: str, end: int) -> Token:
        """Two words without a sign between them are one name, whoever knows it."""
        if word == "?":
            return Token(Kind.NAME, word, at, end)
        words = [word]
        while True:
            gap = _SPACE.match(self.text, end)
            found = _PARTS.match(self.text, gap.end()) if gap is not None else None
            if found is None or found.group() in _ENDING or found.group() == "?":
                return Token(Kind.NAME, " ".join(words), at, end)
            words.append(found.group())
            end = found.end()

    def read_property(self) -> Token:
        """The name behind a dot: keywords are names here too."""
        at = self.skip_space()
        found = _WORD.match(self.text, at)
        if found is None:
            token = self.peek()
            if token.kind is Kind.NAME:
                return self.next()
            raise self.error(token.at, "a name", describe(token))
        token = self._read_word(at, found.group(), found.end())
        self.move_to(token.end)
        return Token(Kind.NAME, token.text, token.at, token.end)

    def read_key(self) -> Token | None:
        """A name or string with a colon behind it, whatever the name is made of; None if there is none."""
        at = self.skip_space()
        found: re.Match[str] | None = _STRING.match(self.text, at)
        if found is not None:
            name = self._unescape(found)
        else:
            found = _QUOTED.match(self.text, at) or _LONG_NAME.match(self.text, at)
            if found is None:
                return None
            name = " ".join(split_words(found.group(found.lastindex or 0)))
        colon = self._find_next(found.end())
        if not self.text.startswith(":", colon):
            return None
        self.move_to(colon + 1)
        return Token(Kind.NAME, name, at, found.end())

    def read_parameter(self) -> str | None:
        """A name with a comma or a parenthesis behind it, whatever it is made of; None if there is none."""
        at = self.skip_space()
        found = _LONG_NAME.match(self.text, at)
        if found is None or not self.text.startswith((",", ")"), self._find_next(found.end())):
            return None
        return self._take_name(found)

    def read_iterated(self) -> str | None:
        """A name with an `in` behind it, whatever it is made of; None if there is none."""
        found = _ITERATED.match(self.text, self.skip_space())
        return None if found is None else self._take_name(found)

    def _take_name(self, found: re.Match[str]) -> str | None:
        name = " ".join(split_words(found.group()))
        if name in KEYWORDS:
            return None
        self.move_to(found.end())
        return name

    def _find_next(self, at: int) -> int:
        """Where something stands again, from an offset on."""
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    # --- errors ---

    def error(self, at: int, expected: str, found: str, hint: str = "") -> FeelSyntaxError:
        """What is wrong at an offset, with the line and a caret below it."""
        return make_error(self.text, at, expected, found, hint)


def make_error(text: str, at: int, expected: str, found: str, hint: str = "") -> FeelSyntaxError:
    """What is wrong at an offset of a text; `hint` says what to write instead."""
    before = text[:at]
    line = before.count("\n") + 1
    begin = before.rfind("\n") + 1
    stop = text.find("\n", at)
    column = at - begin + 1
    shown = text[begin : len(text) if stop < 0 else stop]
    if len(shown) > 160:  # of a very long line, what is near
        cut = max(0, column - 80)
        shown, offset = shown[cut : cut + 160], column - 1 - cut
    else:
        offset = column - 1
    picture = f"{shown}\n{' ' * offset}^"
    advice = hint if hint.endswith("?") else f"{hint or 'Correct the expression'}:"
    return FeelSyntaxError(
        f"Expected {expected} at line {line}, column {column}, but {found}. {advice}\n{picture}",
        line=line,
        column=column,
        shown=picture,
        expected=expected,
        hint=hint,
    )


def describe(token: Token) -> str:
    """What an error message says was found: `there is '+'`, or `it ends there`."""
    return "it ends there" if token.kind is Kind.END else f"there is {token.text[:40]!r}"


def split_words(text: str) -> list[str]:
    """The words of a name, or of any text, between what the language takes for white space."""
    return _GAP.sub(" ", text).split()


def find_begin(text: str) -> int:
    """The offset of what is no white space; of the end, if there is nothing else."""
    gap = _GAP.match(text)
    return gap.end() if gap else 0


def unescape(text: str) -> str:
    r"""The characters of a string: `\n`, `\u0041`, `\U01F40E` and the like; other backslashes stay."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape_one, text)
    return join_pairs(plain)


def _unescape_one(found: re.Match[str]) -> str:
    four, six, other = found.groups()
    if other is not None:
        return _ESCAPED.get(other, found.group())
    code = int(four or six, 16)
    return chr(code) if code < 0x110000 else found.group()
