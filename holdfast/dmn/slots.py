"""The values of a table's input, sorted into slots: all values of a slot are let through by the same rules.

So a few slots stand for all values there are, and gaps and overlaps are found by looking at slots alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from holdfast.dmn.cells import Cell, Interval, analyse
from holdfast.dmn.matching import Stretches
from holdfast.dmn.tables import Input, Table
from holdfast.dmn.types import find_values
from holdfast.feel.values import Value

_LONGEST_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Slot:
    """Some values: those between two ends, or just one. `rules` are the rules that let them through, as bits."""

    interval: Interval
    rules: int

    @property
    def is_point(self) -> bool:
        """Whether it is just one value."""
        return self.interval.low is not None and self.interval.low == self.interval.high

    def find_example(self) -> Value:
        """One of its values, as plain as possible."""
        low, high = self.interval.low, self.interval.high
        if self.is_point or not isinstance(low if low is not None else high, Decimal):
            return low if low is not None else high
        if low is None or high is None:
            return high - 1 if low is None else low + 1
        whole = low.to_integral_value(rounding="ROUND_FLOOR") + 1
        return whole if whole < high else (low + high) / 2


@dataclass(frozen=True, slots=True)
class SlottedInput:
    """An input with its slots in order. `is_any`: nothing is known of its values, and the only slot is for all of them."""

    label: str
    slots: tuple[Slot, ...]
    is_any: bool = False

    def describe(self, places: Sequence[int]) -> str:
        """Some of its slots in words: "Age < 18", "Risk = high or low"."""
        parts = [_describe_run(self.slots[first : last + 1]) for first, last in _find_runs(places, self.slots)]
        if all(part.startswith("= ") for part in parts):
            return f"{self.label} = {' or '.join(part.removeprefix('= ') for part in parts)}"
        return f"{self.label} {' or '.join(parts)}"


def slot_input(table: Table, column: int, *, is_unknown_met: bool) -> SlottedInput:
    """The slots of an input. Cells that have to be evaluated are met by everything, or by nothing, as told."""
    each = table.inputs[column]
    cells = [row.cells[column] for row in table.rows]
    always = sum(1 << at for at, cell in enumerate(cells) if (cell.is_any if cell is not None else is_unknown_met))
    known = [(1 << at, cell) for at, cell in enumerate(cells) if cell is not None and not cell.is_any]
    allowed = _find_allowed(each)
    kinds = {kind for _, cell in known for kind in cell.list_kinds()} | set(() if allowed is None else allowed.list_kinds())
    label = each.label
    if kinds == {bool}:
        slots = [
            Slot(Interval(value, value), always | sum(bit for bit, cell in known if cell.contains(value)))
            for value in (True, False)
        ]
        return SlottedInput(label, tuple(slots))
    if kinds not in ({Decimal}, {str}):
        everything = always | sum(bit for bit, _ in known if is_unknown_met)
        return SlottedInput(label, (Slot(Interval(), everything),), is_any=True)
    kind = Decimal if kinds == {Decimal} else str
    return SlottedInput(label, tuple(_cut(known, always, allowed, kind)))


def _find_allowed(each: Input) -> Cell | None:
    """What the input's value may be at all, as far as that is told."""
    tests = each.values or find_values(each.type)
    cell = None if tests is None else analyse(tests.tests)
    return None if cell is None or cell.is_any or cell.is_negated or cell.has_null else cell


def _cut(known: Sequence[tuple[int, Cell]], always: int, allowed: Cell | None, kind: type) -> list[Slot]:
    """The slots of numbers or strings. Of strings that nobody lists, only those that occur are looked at."""
    rules = [(bit, cell.numbers if kind is Decimal else cell.strings, cell.is_negated) for bit, cell in known]
    limits = () if allowed is None else allowed.numbers if kind is Decimal else allowed.strings
    # The limits take part as a rule that does not count, so that slots end where they do.
    stretches = Stretches([*rules, (0, limits, False)])
    slots: list[Slot] = []
    for piece, mask in enumerate(stretches.masks):
        at, is_end = divmod(piece, 2)
        if is_end:
            interval = Interval(stretches.ends[at], stretches.ends[at], True, True)
        else:
            low = stretches.ends[at - 1] if at else None
            interval = Interval(low, stretches.ends[at] if at < len(stretches.ends) else None)
        slot = Slot(interval, always | mask)
        if limits:
            if any(limit.contains(slot.find_example()) for limit in limits) and (is_end or kind is Decimal):
                slots.append(slot)
        elif is_end or kind is Decimal:
            slots.append(slot)
    return slots


# --- in words ---


def _find_runs(places: Sequence[int], slots: Sequence[Slot]) -> list[tuple[int, int]]:
    """First and last of neighbouring slots. Only slots that touch each other make one."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place - 1 and slots[place - 1].interval.high == slots[place].interval.low:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def _describe_run(slots: Sequence[Slot]) -> str:
    first, last = slots[0].interval, slots[-1].interval
    low, high = first.low, last.high
    if low is not None and low == high:
        return f"= {show(low)}"
    if low is None and high is None:
        return "is anything"
    if low is None:
        return f"{'<=' if last.high_included else '<'} {show(high)}"
    if high is None:
        return f"{'>=' if first.low_included else '>'} {show(low)}"
    opening, closing = "[" if first.low_included else "(", "]" if last.high_included else ")"
    return f"in {opening}{show(low)}..{show(high)}{closing}"


def show(value: Value) -> str:
    """A number, string or boolean, for a person."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if abs(value.adjusted()) < _LONGEST_SHOWN else str(value)
    text = str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
