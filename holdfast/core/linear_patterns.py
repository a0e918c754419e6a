r"""Patterns of Python's `re` for a library that matches in linear time and gives the parts of patterns other meanings.

`find_linear` makes a pattern that matches every text which `re.search` finds the given one in. For most patterns it matches
nothing else. What cannot be matched in linear time, looking around, is left out, so that more is matched; a pattern
with parts that are not known here (flags, references to groups) has none. Two things mean something else elsewhere:

- Classes of characters: `\w`, `\d` and `\s` are ASCII to some, and follow other tables of Unicode to others. Which
  characters a class has is asked of `re` itself, and they are written out as ranges.
- `$`, which in Python also matches before a newline at the end.
"""

from __future__ import annotations

import re
import sys
from array import array
from functools import lru_cache
from typing import Final

_TOKENS: Final = re.compile(
    r"""
      (?P<set> \\[wWdDsS] | \. | \[\^?(?:\\[wWdDsSnrtfv\W]|[^\\\[\]])+\] )
    | (?P<literal> \\[nrtfv] | \\[^a-zA-Z0-9] | [^\\^$.\[(){}*+?|] )
    | (?P<edge> \\[bB] )
    | (?P<look> \(\?<?[=!] )
    | (?P<open> \((?!\?) | \(\?: | \(\?P<\w+> )
    | (?P<close> \) )
    | (?P<count> \{\d*,?\d*\} | [*+?] )
    | (?P<or> \| )
    | (?P<begin> \^ | \\A )
    | (?P<end> \$ | \\Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_COUNT: Final = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPED: Final = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\f": "\f", "\\v": "\v"}
_CATEGORY: Final = re.compile(r"\\[wWdDsS]")
_NOTHING: Final = "(?:)"
_LAST_ASCII: Final = 0x7F
_SURROGATES: Final = range(0xD800, 0xE000)
_AFTER_LAST: Final = 0x110000


class _Unknown(Exception):
    """A part of a pattern that is not known here."""


def find_linear(pattern: str) -> str | None:
    """A pattern that matches whatever `re` finds the given one in, in linear time; None if that cannot be made."""
    try:
        return "".join(_translate(pattern))
    except _Unknown:
        return None


def _translate(pattern: str) -> list[str]:
    made: list[str] = []
    depth, skipped_from, before = 0, 0, ""
    for kind, text, at_end in _split(pattern):
        if kind == before == "count" and text == "+":
            continue  # a count that gives nothing back: without that, more is matched, and nothing less
        before = kind
        if kind in ("open", "look"):
            depth += 1
            if kind == "look" and not skipped_from:
                skipped_from = depth
        if not skipped_from:
            made.append(_translate_part(kind, text, is_last=at_end and depth == 0))
        if kind == "close":
            if skipped_from == depth:
                skipped_from = 0
                made.append(_NOTHING)
            depth -= 1
    return made


def find_weight(pattern: str) -> int:
    """About how many states a pattern of `find_linear` has: what is counted counts as often."""
    weights, last = [0], 0
    for kind, text, _ in _split(pattern):
        if kind in ("open", "look"):
            weights.append(0)
            last = 0
        elif kind == "close" and len(weights) > 1:
            last = weights.pop()
            weights[-1] += last
        elif kind == "count":
            most = max((int(number) for number in re.findall(r"\d+", text)), default=1)
            weights[-1] += last * (most - 1)
            last *= most
        else:
            last = 1
            weights[-1] += last
    return max(1, weights[0])


def _split(pattern: str) -> list[tuple[str, str, bool]]:
    """The parts of a pattern: kind, text, and whether nothing or a `|` follows."""
    found: list[tuple[str, str, bool]] = []
    position = 0
    while position < len(pattern):
        match = _TOKENS.match(pattern, position)
        if match is None or match.lastgroup is None:
            raise _Unknown
        position = match.end()
        found.append((match.lastgroup, match.group(), pattern[position : position + 1] in ("", "|")))
    return found


def _translate_part(kind: str, text: str, *, is_last: bool) -> str:
    match kind:
        case "set":
            return _write_out(text)
        case "literal":
            return _write_character(ord(_ESCAPED.get(text, text[-1])))
        case "edge":
            return _NOTHING
        case "open":
            return "(?:"
        case "begin":
            return "^"
        case "end":
            if text == "\\Z":
                return "$"
            if not is_last:  # what follows might take the newline before which it matches
                raise _Unknown
            return r"\x0a?$"
        case "count":
            return _translate_count(text)
        case _:
            return text


def _translate_count(text: str) -> str:
    found = _COUNT.fullmatch(text)
    if found is None:
        return text
    least, comma, most = found.groups()
    if not least and not most:  # to Python, these are no count
        raise _Unknown
    return f"{{{least or 0}{comma}{most}}}"


@lru_cache(maxsize=256)
def _write_out(text: str) -> str:
    """A class of characters as the ranges of its characters."""
    try:
        of_class = re.compile(f"{text}+")
    except re.error:
        raise _Unknown from None
    ranges: list[tuple[int, int]] = []
    for run in of_class.finditer(_list_characters(text)):
        first, last = run.start(), run.end() - 1
        before, after = (first, min(last, _SURROGATES.start - 1)), (max(first, _SURROGATES.stop), last)
        ranges.extend([(first, last)] if last < _SURROGATES.start or first >= _SURROGATES.stop else [before, after])
    written = [_write_range(first, last) for first, last in ranges if first <= last]
    if not written:
        raise _Unknown
    return f"[{''.join(written)}]"


def _list_characters(text: str) -> str:
    """The characters that a class may have, in their order: a plain one has only those that it is written with."""
    is_plain = text.isascii() and text.startswith("[") and not text.startswith("[^") and not _CATEGORY.search(text)
    codes = array("I", range(_LAST_ASCII + 1 if is_plain else _AFTER_LAST))
    return codes.tobytes().decode(f"utf-32-{sys.byteorder[0]}e", "surrogatepass")


def _write_range(first: int, last: int) -> str:
    return _write_character(first) if first == last else f"{_write_character(first)}-{_write_character(last)}"


def _write_character(code: int) -> str:
    if code in _SURROGATES:
        raise _Unknown
    return f"\\x{code:02x}" if code <= _LAST_ASCII else chr(code)
