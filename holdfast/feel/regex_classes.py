"""Reading the parts of regular expressions that stand for one character: escapes, and classes in brackets."""

from __future__ import annotations

from typing import Final

from holdfast.feel.regex_sets import CharSet, add_case_variants, find_escape, find_property, unite
from holdfast.feel.running import Fail

DEEPEST: Final = 100
"""Classes inside each other, and groups inside each other."""

_SINGLE_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"} | {one: one for one in "\\|.-^?*+{}()[]$"}


class Reader:
    """A pattern, read from left to right. All that reads raises Fail for what cannot be read."""

    def __init__(self, pattern: str, *, is_caseless: bool = False) -> None:
        self._pattern = pattern
        self._at = 0
        self._is_caseless = is_caseless

    def take(self) -> str:
        """The next character; nothing at the end."""
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        return character

    def take_until(self, end: str) -> str | None:
        """All up to a character, which is taken too; None if it does not come."""
        found = self._pattern.find(end, self._at)
        if found < 0:
            return None
        text = self._pattern[self._at : found]
        self._at = found + 1
        return text

    def take_number(self, largest: int) -> int | None:
        """The number that the next digits give: at least one, and no more of them than would make it too large."""
        number: int | None = None
        while True:
            digit = self._pattern[self._at : self._at + 1]
            if not (digit.isascii() and digit.isdigit()):
                return number
            longer = (number or 0) * 10 + int(digit)
            if number is not None and longer > largest:
                return number
            number = longer
            self._at += 1

    def skip(self, text: str) -> bool:
        """Go behind a text if it stands next."""
        is_next = self._pattern.startswith(text, self._at)
        if is_next:
            self._at += len(text)
        return is_next

    def read_escape(self) -> str | CharSet:
        """What stands behind a backslash: a character, or a set of them."""
        letter = self.take()
        if letter in _SINGLE_ESCAPES:
            return _SINGLE_ESCAPES[letter]
        if letter in {"p", "P"}:
            return self._read_property(is_negated=letter == "P")
        found = find_escape(letter)
        if found is not None:
            return found
        if not letter:
            raise Fail("the pattern ends with a single backslash: write '\\\\' for the character")
        raise Fail(f"'\\{letter}' in the pattern is no escape that XPath has")

    def _read_property(self, *, is_negated: bool) -> CharSet:
        name = self.take_until("}") if self.skip("{") else None
        if name is None:
            raise Fail("a '\\p' in the pattern has no name in braces behind it")
        found = find_property(name, is_negated=is_negated)
        if found is None:
            raise Fail(f"'{name[:60]}' in the pattern is neither a category of characters nor, with 'Is' before it, a block")
        return found

    def read_class(self, depth: int = 1) -> CharSet:
        """A class, whose opening bracket was taken."""
        if depth > DEEPEST:
            raise Fail(f"the pattern has classes more than {DEEPEST} deep")
        is_negated = self.skip("^")
        ranges: list[tuple[int, int]] = []
        sets: list[CharSet] = []
        while not self._pattern.startswith(("]", "-["), self._at):
            found = self._read_class_part()
            if isinstance(found, CharSet):
                sets.append(found)
            else:
                ranges.append(found)
        if not ranges and not sets:
            raise Fail("the pattern has a class with nothing in it")
        whole = self._unite(ranges, sets, is_negated=is_negated)
        if self.skip("-["):
            # XML Schema, part 2, G.4.2.3: what is negated is only what stands before the subtraction.
            whole = whole.subtract(self.read_class(depth + 1))
        if not self.skip("]"):
            raise Fail("a class in the pattern goes on behind what is subtracted from it")
        return whole

    def _read_class_part(self) -> CharSet | tuple[int, int]:
        """A character, a range or a set."""
        is_hyphen = self._pattern.startswith("-", self._at)
        start = self._read_class_character()
        is_range = self._pattern.startswith("-", self._at) and not self._pattern.startswith(("-]", "-["), self._at)
        if isinstance(start, CharSet):
            return start
        if not is_range:
            return ord(start), ord(start)
        self._at += 1
        is_hyphen |= self._pattern.startswith("-", self._at)
        end = self._read_class_character()
        if isinstance(end, CharSet) or is_hyphen:
            raise Fail("a range in a class of the pattern has ends that are no characters: write '\\-' for the hyphen")
        if end < start:
            raise Fail(f"the range '{start}-{end}' in the pattern goes backwards")
        return ord(start), ord(end)

    def _read_class_character(self) -> str | CharSet:
        character = self.take()
        if character == "\\":
            return self.read_escape()
        if not character:
            raise Fail("a '[' in the pattern is never closed")
        if character == "[":
            raise Fail("a '[' in a class of the pattern must be written '\\['")
        return character

    def _unite(self, ranges: list[tuple[int, int]], sets: list[CharSet], *, is_negated: bool) -> CharSet:
        united = unite(ranges)
        if self._is_caseless:
            united = add_case_variants(united)
        named = (one.resolve() if one.is_negated else one.ranges for one in sets)
        categories = frozenset[str]().union(*(one.categories for one in sets if not one.is_negated))
        return CharSet(unite(united, *named), categories, is_negated)
