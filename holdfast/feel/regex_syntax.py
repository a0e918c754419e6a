r"""Regular expressions as XPath writes them, translated into those that RE2 runs in linear time.

XPath Functions 3.1, 5.6.1: the syntax of XML Schema, part 2, appendix G, with `^` and `$`, reluctant quantifiers,
groups that capture nothing, and back-references. A back-reference is translated where the group can have matched but one
text: `(a)\1` is `(a)(?:a)`; all others need more than linear time, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.feel.regex_classes import DEEPEST, Reader
from holdfast.feel.regex_sets import LINE_ENDS, CharSet, add_case_variants
from holdfast.feel.running import Fail

LONGEST: Final = 10_000
"""Characters of a pattern."""
LARGEST: Final = 300_000
"""Characters of a pattern for RE2, where classes may be long lists of ranges."""
MOST_REPEATS: Final = 1_000
"""What RE2 takes in `{n,m}`."""

_FLAGS: Final = frozenset("smixq")
_NO_FLAGS: Final[frozenset[str]] = frozenset()
_WHITESPACE: Final = frozenset("\t\n\r ")
_COUNTS: Final = re.compile("([0-9]+)(,([0-9]*))?")
_QUANTIFIERS: Final[Mapping[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


@dataclass(frozen=True, slots=True)
class Translation:
    """A pattern as RE2 takes it, and what its use may cost."""

    text: str
    groups: int = 0
    width: int = 1
    """How many characters and classes it has, with repeated ones counted as often as they are repeated."""
    is_far: bool = False
    """Whether a match may be settled only by what stands far behind its end."""
    has_line_ends: bool = False
    """Whether there is a `$` that ends lines."""


class _Group:
    """A group that is open, or that a back-reference may refer to; the whole pattern is one as well."""

    __slots__ = ("branch", "has_loop", "is_certain", "is_plain", "number", "parent", "start", "text", "was_loop", "width")

    def __init__(self, number: int, start: int, parent: _Group | None) -> None:
        self.number = number
        self.start = start
        self.parent = parent
        self.branch = start
        """Where the present alternative begins."""
        self.is_plain = True
        """Whether there are characters in it and nothing else."""
        self.is_certain = True
        """Whether it takes part in each match of its alternative."""
        self.text: str | None = None
        """What it holds, once it is closed."""
        self.has_loop = False
        """Whether the present alternative ends with an endless repetition, so far."""
        self.was_loop = False
        """Whether one of its alternatives did."""
        self.width = 0


def check_pattern(pattern: str, flags: str) -> frozenset[str]:
    """The flags, each of them once. Raises Fail if there are others than `smixq`, or if the pattern is too long."""
    if len(pattern) > LONGEST:
        raise Fail(f"the pattern has {len(pattern):,} characters, which is more than {LONGEST:,}")
    if not flags:
        return _NO_FLAGS
    unknown = sorted(set(flags) - _FLAGS)
    if unknown:
        raise Fail(f"'{unknown[0]}' is no flag: there are s, m, i, x and q")
    return frozenset(flags)


def translate(pattern: str, flags: frozenset[str]) -> Translation:
    """A pattern that was checked as RE2 takes it. Raises Fail, with the reason, if that cannot be done."""
    if "q" in flags:
        is_caseless = "i" in flags
        return Translation("".join(_write_character(one, is_caseless) for one in pattern), width=max(len(pattern), 1))
    if "x" in flags:
        pattern = _drop_whitespace(pattern)
    return _Translator(pattern, flags).translate()


def _drop_whitespace(pattern: str) -> str:
    """XPath Functions 3.1, 5.6.2, flag x: whitespace is removed first of all, but not within a class in brackets."""
    kept: list[str] = []
    depth = 0
    is_escaped = False
    for character in pattern:
        if character in _WHITESPACE and depth == 0:
            continue
        kept.append(character)
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == "[":
            depth += 1
        elif character == "]" and depth:
            depth -= 1
    return "".join(kept)


def _write_character(character: str, is_caseless: bool) -> str:
    if is_caseless:
        code = ord(character)
        variants = add_case_variants(((code, code),))
        if variants != ((code, code),):
            return CharSet(variants).write()
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):X}}}"


class _Translator:
    """One pass over a pattern, with the open groups on a stack."""

    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self._reader = Reader(pattern, is_caseless="i" in flags)
        self._is_caseless = "i" in flags
        self._has_lines = "m" in flags
        self._any = "(?s:.)" if "s" in flags else CharSet(LINE_ENDS, is_negated=True).write()
        self._out: list[str] = []
        self._open = [_Group(0, 0, None)]
        self._groups: dict[int, _Group] = {}
        self._count = 0
        self._size = 0
        self._last: _Group | int | None = None
        """What a quantifier would repeat: a group that was just closed, or an atom of width 1."""
        self._is_far = False
        self._has_line_ends = False

    def translate(self) -> Translation:
        while character := self._reader.take():
            self._translate_next(character)
        if len(self._open) > 1:
            raise Fail("a '(' in the pattern is never closed")
        width = max(self._open[0].width, 1)
        return Translation("".join(self._out), self._count, width, self._is_far, self._has_line_ends)

    def _translate_next(self, character: str) -> None:
        match character:
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "|":
                self._end_branch()
            case "?" | "*" | "+" | "{":
                self._quantify(character)
            case ".":
                self._add(self._any)
            case "^":
                self._add("(?m:^)" if self._has_lines else "\\A")
            case "$":
                self._has_line_ends |= self._has_lines
                self._add("(?m:$)" if self._has_lines else "\\z")
            case "[":
                self._add(self._reader.read_class().write())
            case "\\":
                self._translate_escape()
            case "]" | "}":
                raise Fail(f"a '{character}' in the pattern closes nothing: write '\\{character}' for the character")
            case _:
                self._add(_write_character(character, self._is_caseless), is_plain=True)

    def _add(self, text: str, *, is_plain: bool = False) -> None:
        group = self._open[-1]
        self._is_far |= group.has_loop
        group.is_plain &= is_plain
        group.width += 1
        self._size += len(text)
        if self._size > LARGEST:
            raise Fail("the pattern has too many large classes")
        self._out.append(text)
        self._last = 1

    # --- groups ---

    def _open_group(self) -> None:
        parent = self._open[-1]
        self._is_far |= parent.has_loop
        parent.is_plain = False
        if len(self._open) > DEEPEST:
            raise Fail(f"the pattern has groups more than {DEEPEST} deep")
        number = 0
        if self._reader.skip("?:"):
            pass
        elif self._reader.skip("?"):
            raise Fail(
                "'(?' in the pattern begins no '(?:': there are no look-around, no named groups and no flags in groups"
            )
        else:
            self._count += 1
            number = self._count
        self._out.append("(" if number else "(?:")
        group = _Group(number, len(self._out), parent)
        self._open.append(group)
        self._last = None

    def _close_group(self) -> None:
        if len(self._open) == 1:
            raise Fail("a ')' in the pattern closes nothing: write '\\)' for the character")
        group = self._open.pop()
        parent = self._open[-1]
        group.was_loop |= group.has_loop
        parent.has_loop |= group.was_loop
        parent.width += group.width
        if group.is_plain:
            group.text = "".join(self._out[group.start :])
        self._out.append(")")
        if group.number:
            self._groups[group.number] = group
        self._last = group

    def _end_branch(self) -> None:
        group = self._open[-1]
        group.was_loop |= group.has_loop
        group.has_loop = False
        group.is_plain = False
        self._out.append("|")
        group.branch = len(self._out)
        self._last = None

    # --- quantifiers ---

    def _quantify(self, character: str) -> None:
        if self._last is None:
            raise Fail(f"there is nothing that the '{character}' in the pattern could repeat")
        least, most = self._read_counts() if character == "{" else _QUANTIFIERS[character]
        group = self._open[-1]
        repeated = self._last
        width = repeated if isinstance(repeated, int) else repeated.width
        group.width += width * (max(least, most or 0, 1) - 1)
        group.is_plain = False
        if isinstance(repeated, _Group):
            repeated.is_certain &= least > 0
            self._is_far |= repeated.was_loop and most != 1
        group.has_loop |= most is None
        self._out.append(_write_counts(least, most))
        if self._reader.skip("?"):
            self._out.append("?")
        self._last = None

    def _read_counts(self) -> tuple[int, int | None]:
        found = _COUNTS.fullmatch(self._reader.take_until("}") or "")
        if found is None:
            raise Fail("a '{' in the pattern begins no '{n}', '{n,}' or '{n,m}': write '\\{' for the character")
        least = _read_count(found[1])
        if found[2] is None:
            return least, least
        most = _read_count(found[3]) if found[3] else None
        if most is not None and most < least:
            raise Fail(f"'{{{least},{most}}}' in the pattern has more at least than at most")
        return least, most

    # --- escapes ---

    def _translate_escape(self) -> None:
        # XPath Functions 3.1, 5.6.1: as many digits belong to a back-reference as give the number of a group.
        number = self._reader.take_number(self._count)
        if number is not None:
            self._refer_back(number)
            return
        found = self._reader.read_escape()
        if isinstance(found, str):
            self._add(_write_character(found, self._is_caseless), is_plain=True)
        else:
            self._add(found.write())

    def _refer_back(self, number: int) -> None:
        group = self._groups.get(number)
        if group is None:
            raise Fail(f"'\\{number}' in the pattern refers to a group that is not closed before it")
        # The group must have matched whenever the reference is reached: it stands before it in the same alternative.
        is_before = group.parent in self._open and group.parent is not None and group.start > group.parent.branch
        if group.text is None or not group.is_certain or not is_before:
            raise Fail(f"'\\{number}' in the pattern is a back-reference, which cannot be matched in linear time")
        self._add(f"(?:{group.text})")
        self._open[-1].width += group.width


def _read_count(digits: str) -> int:
    count = int(digits) if len(digits) < 10 else MOST_REPEATS + 1
    if count > MOST_REPEATS:
        raise Fail(f"the pattern repeats something more than {MOST_REPEATS:,} times")
    return count


def _write_counts(least: int, most: int | None) -> str:
    for sign, counts in _QUANTIFIERS.items():
        if counts == (least, most):
            return sign
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
