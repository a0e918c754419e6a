"""Sets of characters, as regular expressions name them, and as RE2 takes them.

XML Schema, part 2, appendix G, and XPath Functions 3.1, 5.6.1.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from holdfast.feel.regex_blocks import find_block

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code points, in order, none touching the next."""

LAST: Final = 0x10FFFF
ALL: Final[Ranges] = ((0, LAST),)
SPACES: Final[Ranges] = ((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20))
LINE_ENDS: Final[Ranges] = ((0x0A, 0x0A), (0x0D, 0x0D))

_NAME_STARTS: Final[Ranges] = (
    (0x3A, 0x3A),
    (0x41, 0x5A),
    (0x5F, 0x5F),
    (0x61, 0x7A),
    (0xC0, 0xD6),
    (0xD8, 0xF6),
    (0xF8, 0x2FF),
    (0x370, 0x37D),
    (0x37F, 0x1FFF),
    (0x200C, 0x200D),
    (0x2070, 0x218F),
    (0x2C00, 0x2FEF),
    (0x3001, 0xD7FF),
    (0xF900, 0xFDCF),
    (0xFDF0, 0xFFFD),
    (0x10000, 0xEFFFF),
)
"""XML 1.1, NameStartChar."""
_NAME_PARTS: Final = (*_NAME_STARTS, (0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))

_SUBCATEGORIES: Final = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "Z": "slp", "S": "mcko", "C": "cfon"}
_CATEGORIES: Final = frozenset(
    {*_SUBCATEGORIES, *(name + letter for name, letters in _SUBCATEGORIES.items() for letter in letters)}
)
_WITH_UNASSIGNED: Final = frozenset({"C", "Cn"})
"""Categories that RE2 lacks, or has without the characters that are not assigned."""
_SCANNED: Final = (range(0x40000), range(0xE0000, 0xE1000))
_UNSCANNED: Final = {
    "Cn": ((0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF), (0x10FFFE, LAST)),
    "Co": ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)),
}
"""The planes where there is nothing else, so that a million characters need not be looked at."""

_CASED: Final = range(0x20000)
"""All that has an upper or lower case is in here."""
_ASCII_PARTNERS: Final = {"i": 0x131, "k": 0x212A, "s": 0x17F}
"""Beyond ASCII, with the same case as these letters: the i without a dot, the Kelvin sign, and the long s."""


@dataclass(frozen=True, slots=True)
class CharSet:
    """The characters in ranges and in categories; or, if it is negated, all others."""

    ranges: Ranges = ()
    categories: frozenset[str] = frozenset()
    r"""As RE2 writes them: `\p{Lu}`, `\P{Nd}`."""
    is_negated: bool = False

    def write(self) -> str:
        r"""The set as RE2 writes a class of characters: `[^\x{41}\p{Nd}]`."""
        if not self.ranges and not self.categories:
            return _write_class(ALL, (), is_negated=not self.is_negated)
        return _write_class(self.ranges, sorted(self.categories), is_negated=self.is_negated)

    def resolve(self) -> Ranges:
        """All characters of the set as ranges, with its categories looked up and no negation left."""
        found = unite(self.ranges, *(_find_category(one[3:-1], one[1] == "P") for one in self.categories))
        return complement(found) if self.is_negated else found

    def subtract(self, other: CharSet) -> CharSet:
        """What is in here and not in the other."""
        return CharSet(complement(unite(complement(self.resolve()), other.resolve())))


def _write_class(ranges: Ranges, categories: Iterable[str], *, is_negated: bool) -> str:
    written = [f"\\x{{{start:X}}}" if start == end else f"\\x{{{start:X}}}-\\x{{{end:X}}}" for start, end in ranges]
    return f"[{'^' if is_negated else ''}{''.join(written)}{''.join(categories)}]"


# --- sets of ranges ---


def unite(*parts: Iterable[tuple[int, int]]) -> Ranges:
    """All that is in any of them, in order."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(one for part in parts for one in part):
        if united and start <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return tuple(united)


def complement(ranges: Ranges) -> Ranges:
    """All that is not in them."""
    gaps = []
    next_start = 0
    for start, end in ranges:
        if start > next_start:
            gaps.append((next_start, start - 1))
        next_start = end + 1
    if next_start <= LAST:
        gaps.append((next_start, LAST))
    return tuple(gaps)


# --- sets with names ---


def find_escape(letter: str) -> CharSet | None:
    r"""`\s`, `\i`, `\c`, `\d` or `\w`, or what is not in them, in capitals; None for other letters."""
    found = _ESCAPES.get(letter.lower())
    if found is None:
        return None
    return CharSet(found.ranges, found.categories, is_negated=True) if letter.isupper() else found


def find_property(name: str, *, is_negated: bool) -> CharSet | None:
    r"""`\p{Lu}`, a category, or `\p{IsGreekandCoptic}`, a block; None if there is no such one."""
    if name.startswith("Is"):
        block = find_block(name[2:])
        return None if block is None else CharSet((block,), is_negated=is_negated)
    if name not in _CATEGORIES:
        return None
    if name in _WITH_UNASSIGNED:
        return CharSet(_find_category(name, is_negated))
    return CharSet(categories=frozenset({f"\\{'P' if is_negated else 'p'}{{{name}}}"}))


@cache
def _find_category(name: str, is_negated: bool) -> Ranges:
    if is_negated:
        return complement(_find_category(name, False))
    by_name = _scan_categories()
    return unite(*(ranges for one, ranges in by_name.items() if one.startswith(name)))


@cache
def _scan_categories() -> Mapping[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for scanned in _SCANNED:
        name, start = "", scanned.start
        for code in scanned:
            here = unicodedata.category(chr(code))
            if here != name:
                if name:
                    found[name].append((start, code - 1))
                name, start = here, code
        found[name].append((start, scanned.stop - 1))
    for name, ranges in _UNSCANNED.items():
        found[name].extend(ranges)
    return found


# --- upper and lower case ---


def add_case_variants(ranges: Ranges) -> Ranges:
    """These characters, and all that have the same upper or lower case as one of them.

    XPath Functions 3.1, 5.6.2, flag i: it is about characters and ranges, not about categories.
    """
    if ranges and ranges[-1][1] < 0x80:
        return unite(ranges, _find_ascii_variants(ranges))
    variants = _find_variants()
    cased = _list_cased()
    codes = (code for start, end in ranges for code in cased[bisect_left(cased, start) : bisect_right(cased, end)])
    return unite(ranges, ((one, one) for code in codes for one in variants[code]))


def _find_ascii_variants(ranges: Ranges) -> Iterable[tuple[int, int]]:
    for start, end in ranges:
        for code in range(start, end + 1):
            other = ord(chr(code).swapcase())
            yield other, other
            partner = _ASCII_PARTNERS.get(chr(code).lower(), other)
            yield partner, partner


@cache
def _list_cased() -> list[int]:
    return sorted(_find_variants())


@cache
def _find_variants() -> Mapping[int, set[int]]:
    by_case: dict[str, set[int]] = defaultdict(set)
    for code in _CASED:
        character = chr(code)
        lower, upper = character.lower(), character.upper()
        if lower != upper:
            by_case[f"l{lower}"].add(code)
            by_case[f"u{upper}"].add(code)
    variants: dict[int, set[int]] = defaultdict(set)
    for alike in by_case.values():
        for code in alike:
            variants[code] |= alike
    return variants


_ESCAPES: Final[Mapping[str, CharSet]] = {
    "s": CharSet(SPACES),
    "i": CharSet(_NAME_STARTS),
    "c": CharSet(unite(_NAME_PARTS)),
    "d": CharSet(categories=frozenset({"\\p{Nd}"})),
    # All but punctuation, separators and others: what is left are letters, marks, numbers and symbols.
    "w": CharSet(categories=frozenset({"\\p{L}", "\\p{M}", "\\p{N}", "\\p{S}"})),
}
