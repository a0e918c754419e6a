"""Regular expressions in linear time: `matches`, `replace`, `split` and `extract` as XPath has them, run by RE2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from holdfast.feel.regex_classes import Reader
from holdfast.feel.regex_syntax import check_pattern, translate
from holdfast.feel.running import MOST_CHARACTERS, Fail, Run

_MEMORY: Final = 4 * 1024 * 1024
"""Bytes for a pattern and what RE2 keeps of its states."""
_KEPT: Final = 64
"""Compiled patterns, and such as were refused."""
_STEPS_OF_MATCH: Final = 4
_BYTES_OF_MATCH: Final = 120
"""Of the strings that each match leaves behind, without their characters."""
_NARROW: Final = 12
"""Patterns of that width cannot have more states than RE2 keeps: each byte costs the same few nanoseconds."""


class Match:
    """Where a pattern matched, in bytes."""

    __slots__ = ("_data", "_found", "end", "start")

    def __init__(self, data: bytes, found: Any) -> None:
        self._data = data
        self._found = found
        self.start: int = found.start()
        self.end: int = found.end()

    def read_group(self, number: int) -> str:
        """What a group matched; nothing if it took no part. Group 0 is the whole."""
        start, end = self._found.span(number)
        return self._data[max(start, 0) : max(end, 0)].decode()


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled pattern. The one place that knows the re2 package, which has no types."""

    compiled: Any
    size: int
    groups: int
    width: int
    is_far: bool
    has_line_ends: bool

    def is_in(self, run: Run, data: bytes) -> bool:
        """Whether there is a match in UTF-8."""
        run.spend(1 + self._weigh(len(data)) + (len(data) >> 10))
        return self.compiled.search(self._show_end(data), 0, len(data)) is not None

    def find(self, run: Run, data: bytes) -> Iterator[Match]:
        """All matches in UTF-8, from left to right."""
        end = len(data)
        run.spend(1 + self._weigh(end))
        data = self._show_end(data)
        at = 0
        while at <= end:
            found = self.compiled.search(data, at, end)
            if found is None:
                return
            match = Match(data, found)
            yield match
            at = match.end if match.end > match.start else _step(data, match.end)
            run.spend(_STEPS_OF_MATCH + self._weigh(end - at if self.is_far else self.width * 4), _BYTES_OF_MATCH)

    def _show_end(self, data: bytes) -> bytes:
        """XPath Functions 3.1, 5.6.1: no line ends behind a newline at the very end; so RE2 sees that more stands there."""
        return data + b"." if self.has_line_ends and data.endswith(b"\n") else data

    def _weigh(self, size: int) -> int:
        """Steps for so many bytes, at worst."""
        return size // 1_000 if self.width <= _NARROW else size * self.width // 250


def _step(data: bytes, at: int) -> int:
    """The place in UTF-8 bytes behind the character that begins at `at`."""
    at += 1
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def encode(text: str) -> bytes:
    """A text as UTF-8. Raises Fail if it has half of a pair of surrogates in it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fail("the text has half of a surrogate pair in it, which is no character") from None


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a pattern cannot be run, and what it took to know."""

    reason: str
    steps: int


def compile_pattern(run: Run, pattern: str, flags: str = "") -> Regex:
    """A pattern of XPath with flags out of `smixq`. Raises Fail, with the reason, if it cannot be run in linear time.

    Its first use in an evaluation costs the same steps whether it was compiled before or not: an evaluation always ends
    in the same way.
    """
    checked = check_pattern(pattern, flags)
    is_new = (pattern, flags) not in run.patterns
    run.spend(_weigh_pattern(pattern) if is_new else 2 + len(pattern) // 50)
    made = _compile(pattern, checked)
    if isinstance(made, _Refusal):
        run.spend(made.steps)
        raise Fail(made.reason)
    if is_new:
        run.spend(made.size * 3 // 4)
        run.patterns.add((pattern, flags))
    return made


def _weigh_pattern(pattern: str) -> int:
    """What it takes to translate and compile one: classes that are taken from others are the most work."""
    return 50 + 2 * len(pattern) + 3_000 * (pattern.count("-[") + pattern.count("\\P") + pattern.count("\\W"))


@lru_cache(maxsize=_KEPT)
def _compile(pattern: str, flags: frozenset[str]) -> Regex | _Refusal:
    try:
        translation = translate(pattern, flags)
    except Fail as error:
        return _Refusal(str(error), 0)
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        compiled = re2.compile(translation.text.encode("ascii"), options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        return _Refusal(f"the pattern is too large, or repeats too much: {reason}", 20_000)
    return Regex(
        compiled,
        compiled.programsize,
        translation.groups,
        translation.width,
        translation.is_far,
        translation.has_line_ends,
    )


def matches(run: Run, text: str, pattern: str, flags: str) -> bool:
    """Whether a pattern matches somewhere in a text."""
    return compile_pattern(run, pattern, flags).is_in(run, encode(text))


def extract(run: Run, text: str, pattern: str) -> list[str]:
    """All that a pattern matches in a text."""
    run.check_text(len(text), text)
    return [match.read_group(0) for match in compile_pattern(run, pattern).find(run, encode(text))]


def split(run: Run, text: str, pattern: str) -> list[str]:
    """What stands between the matches of a pattern in a text. Raises Fail if it matches the empty text."""
    run.check_text(len(text), text)
    data = encode(text)
    parts = []
    at = 0
    for match in _compile_nonempty(run, pattern, "").find(run, data):
        parts.append(data[at : match.start].decode())
        at = match.end
    parts.append(data[at:].decode())
    return parts


def replace(run: Run, text: str, pattern: str, replacement: str, flags: str) -> str:
    """A text with each match of a pattern replaced. Raises Fail if it matches the empty text."""
    regex = _compile_nonempty(run, pattern, flags)
    template = [replacement] if "q" in flags else _read_replacement(replacement, regex.groups)
    data = encode(text)
    parts: list[str] = []
    at = size = 0
    for match in regex.find(run, data):
        new = "".join([one if isinstance(one, str) else match.read_group(one) for one in template])
        parts += (data[at : match.start].decode(), new)
        at = match.end
        size += len(new)
        if size > MOST_CHARACTERS:
            break
    run.check_text(size + len(text), text, replacement)
    parts.append(data[at:].decode())
    return "".join(parts)


def _compile_nonempty(run: Run, pattern: str, flags: str) -> Regex:
    """XPath Functions 3.1, 5.6.4 and 5.6.5: a pattern that matches the empty text is an error."""
    regex = compile_pattern(run, pattern, flags)
    if regex.is_in(run, b""):
        raise Fail("the pattern matches the empty text, so that it would match everywhere")
    return regex


def _read_replacement(replacement: str, groups: int) -> list[str | int]:
    r"""Texts, and numbers of groups. XPath Functions 3.1, 5.6.4: `$1`, `\$` and `\\`; else these signs are an error."""
    template: list[str | int] = []
    text = ""
    reader = Reader(replacement)
    while sign := reader.take():
        if sign == "$":
            number = reader.take_number(groups)
            if number is None:
                raise Fail("a '$' in the replacement has no number of a group behind it: write '\\$' for the character")
            template += (text, number) if number <= groups else (text,)
            text = ""
            continue
        if sign == "\\":
            sign = reader.take()
            if sign not in {"\\", "$"}:
                raise Fail("a backslash in the replacement stands neither before a '$' nor before another one")
        text += sign
    return [*template, text]
