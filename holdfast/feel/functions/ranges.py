"""Functions over ranges: the relations of DMN 10.3.4.7, and `range` of 10.3.4.1.

DMN has a formula for each relation, with many cases of ends that belong to a range or do not. They come to this: a start
that is not included lies just behind its value, an end that is not included just before it, and a point is a range that
starts and ends with it. So each relation is a comparison of such edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from holdfast.errors import FeelError
from holdfast.feel.comparing import compare
from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.lexer import Kind, Lexer, Token
from holdfast.feel.running import Fail, Run
from holdfast.feel.temporal import parsing
from holdfast.feel.temporal.values import name_type
from holdfast.feel.values import NUMBERS, Range, Value


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a range starts or ends."""

    value: Value
    shift: int = 0
    """-1 just before the value, 1 just behind it."""
    side: int = 0
    """-1 before all values, 1 behind all values: the range has no such end."""


@dataclass(frozen=True, slots=True)
class Span:
    """What a range or a point covers: all from one edge to another."""

    start: Edge
    end: Edge


def find_span(of: Value) -> Span:
    """The span of a range or a point. Raises Fail for what holds everything but one value."""
    if type(of) is not Range:
        return Span(Edge(of), Edge(of))
    if not of.has_start and not of.has_end:
        if not of.start_included:
            raise Fail("what excludes one value only has neither start nor end")
        return find_span(of.start)
    start = Edge(of.start, 0 if of.start_included else 1) if of.has_start else Edge(None, side=-1)
    end = Edge(of.end, 0 if of.end_included else -1) if of.has_end else Edge(None, side=1)
    return Span(start, end)


def order(left: Edge, right: Edge) -> int:
    """Negative, zero or positive, as the left edge lies before, at or behind the right one."""
    if left.side or right.side:
        return left.side - right.side
    by_value = compare(left.value, right.value)
    if by_value is None:
        raise Fail("there is no order between the values")
    return by_value or left.shift - right.shift


# --- relations ---


def _is_before(a: Span, b: Span) -> bool:
    return order(a.end, b.start) < 0


def _meets(a: Span, b: Span) -> bool:
    return order(a.end, b.start) == 0


def _overlaps(a: Span, b: Span) -> bool:
    return order(a.end, b.start) >= 0 and order(a.start, b.end) <= 0


def _overlaps_before(a: Span, b: Span) -> bool:
    return order(a.start, b.start) < 0 <= order(a.end, b.start) and order(a.end, b.end) <= 0


def _finishes(a: Span, b: Span) -> bool:
    return order(a.end, b.end) == 0 and order(a.start, b.start) >= 0


def _includes(a: Span, b: Span) -> bool:
    return order(a.start, b.start) <= 0 and order(a.end, b.end) >= 0


def _starts(a: Span, b: Span) -> bool:
    return order(a.start, b.start) == 0 and order(a.end, b.end) <= 0


def _coincides(a: Span, b: Span) -> bool:
    return order(a.start, b.start) == 0 and order(a.end, b.end) == 0


def _relate(holds: Callable[[Span, Span], bool], *forms: str, is_turned: bool = False) -> tuple[Form, ...]:
    """The forms of a relation, by their parameters: ranges are those whose names begin with `range`."""

    def ask(run: Run, first: Value, second: Value) -> bool:
        left, right = find_span(first), find_span(second)
        return holds(right, left) if is_turned else holds(left, right)

    def ask_of_points(run: Run, first: Value, second: Value) -> bool:
        if type(first) is Range or type(second) is Range:
            raise Fail("a point does not coincide with a range")
        return ask(run, first, second)

    return tuple(
        form(
            ask_of_points if names == "point1 point2" else ask,
            *((name, "range" if name.startswith("range") else "any") for name in names.split()),
        )
        for names in forms
    )


# --- from text ---

_TEMPORAL: Final[Mapping[str, Callable[[str], Value]]] = {
    "date": parsing.parse_date,
    "time": parsing.parse_time,
    "date and time": parsing.parse_date_time,
    "duration": parsing.parse_duration,
}
_STEPS: Final = 20
_LONGEST: Final = 10_000
"""Characters of a text that can be a range."""


def parse_range(run: Run, text: str) -> Range:
    """`range`: from a text like `[1..3]`, with literals for its ends. An end that is left out is excluded: `(..3]`.

    DMN 10.3.1.2, range literal: its ends are literals of numbers and strings, `@"…"`, or `date("…")` and the like.
    """
    if len(text) > _LONGEST:
        raise Fail("the text is too long for a range")
    run.spend(_STEPS + len(text))
    lexer = Lexer(text)
    try:
        found = _read_range(lexer)
        _expect(lexer, Kind.END)
    except FeelError as error:
        raise Fail("the text is not a range like [1..3]") from error
    if found.has_start and found.has_end:
        ascending = compare(found.start, found.end)
        if ascending is None or ascending > 0 or _kind_of(found.start) != _kind_of(found.end):
            raise Fail("the start is not of the kind of the end, or is behind it")
    return found


def _read_range(lexer: Lexer) -> Range:
    opening = _expect(lexer, Kind.OPERATOR, "[", "(", "]")
    has_start = lexer.peek().text != ".."
    start = _read_end(lexer) if has_start else None
    _expect(lexer, Kind.OPERATOR, "..")
    has_end = lexer.peek().text not in (")", "[", "]")
    end = _read_end(lexer) if has_end else None
    closing = _expect(lexer, Kind.OPERATOR, "]", ")", "[")
    start_included, end_included = opening.text == "[", closing.text == "]"
    if (start_included and not has_start) or (end_included and not has_end) or not (has_start or has_end):
        raise Fail("an end that is included has to be there, and one of the two in any case")
    return Range(start, end, start_included, end_included, has_start, has_end)


def _read_end(lexer: Lexer) -> Value:
    token = lexer.next()
    if token.kind in (Kind.NUMBER, Kind.STRING):
        return token.value
    if token.text == "-":
        number = _expect(lexer, Kind.NUMBER).value
        return NUMBERS.minus(number) if isinstance(number, Decimal) else None
    value = None
    if token.text == "@":
        value = parsing.parse_temporal(_read_text(lexer))
    elif token.kind is Kind.NAME and token.text in _TEMPORAL:
        _expect(lexer, Kind.OPERATOR, "(")
        value = _TEMPORAL[token.text](_read_text(lexer))
        _expect(lexer, Kind.OPERATOR, ")")
    if value is None:
        raise Fail(f"{token.text!r} does not begin a literal that can be an end of a range")
    return value


def _read_text(lexer: Lexer) -> str:
    return str(_expect(lexer, Kind.STRING).value)


def _expect(lexer: Lexer, kind: Kind, *texts: str) -> Token:
    token = lexer.next()
    if token.kind is not kind or (texts and token.text not in texts):
        raise Fail(f"a range has something else where {token.text!r} stands")
    return token


def _kind_of(value: Value) -> str:
    return name_type(value) or type(value).__name__


RANGES: Final[Mapping[str, tuple[Form, ...]]] = {
    "before": _relate(_is_before, "range1 range2", "range point", "point range", "point1 point2"),
    "after": _relate(_is_before, "range1 range2", "range point", "point range", "point1 point2", is_turned=True),
    "meets": _relate(_meets, "range1 range2"),
    "met by": _relate(_meets, "range1 range2", is_turned=True),
    "overlaps": _relate(_overlaps, "range1 range2"),
    "overlaps before": _relate(_overlaps_before, "range1 range2"),
    "overlaps after": _relate(_overlaps_before, "range1 range2", is_turned=True),
    "finishes": _relate(_finishes, "range1 range2", "point range"),
    "finished by": _relate(_finishes, "range1 range2", "range point", is_turned=True),
    "includes": _relate(_includes, "range1 range2", "range point"),
    "during": _relate(_includes, "range1 range2", "point range", is_turned=True),
    "starts": _relate(_starts, "range1 range2", "point range"),
    "started by": _relate(_starts, "range1 range2", "range point", is_turned=True),
    "coincides": _relate(_coincides, "range1 range2", "point1 point2"),
    "range": (form(parse_range, ("from", "string")),),
}
"""By name. The forms with ranges come first, as a point may be anything."""
