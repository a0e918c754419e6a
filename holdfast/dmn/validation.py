"""What may be wrong with a decision table: rules that overlap although they may not, and values that no rule matches.

Both are told only if they are sure, whatever cells give that have to be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.dmn.model import HitPolicy
from holdfast.dmn.policies import get_empty
from holdfast.dmn.slots import Slot, SlottedInput, show, slot_input
from holdfast.dmn.tables import Table

MOST_TOLD: Final = 10
"""Overlaps, and gaps, of one table that are told."""
MOST_WORK: Final = 3_000_000
"""Slots of inputs that are looked at for one table, one by one."""
MOST_INPUTS: Final = 100
MOST_RULES: Final = 2_000


class _TooMuch(Exception):
    """The table is too large to be looked at."""


@dataclass(slots=True)
class _Budget:
    left: int = MOST_WORK

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise _TooMuch


def validate_table(table: Table) -> list[str]:
    """Overlaps and gaps in words, each with where the table stands."""
    place = table.table.place
    return [f"{place}: {text}" for text in (*find_overlaps(table), *find_gaps(table))]


# --- overlaps ---


def find_overlaps(table: Table) -> list[str]:
    """Rules that match the same values: none may for the hit policy U, and for A only those with the same outputs."""
    policy = table.table.hit_policy
    if policy not in (HitPolicy.UNIQUE, HitPolicy.ANY) or len(table.rows) < 2:
        return []
    found: list[str] = []
    budget = _Budget()
    try:
        inputs = _slot_inputs(table, budget, is_unknown_met=False)
        for at in range(len(table.rows)):
            others = _find_overlapping(inputs, at, len(table.rows), budget)
            while others:
                bit = others & -others
                others ^= bit
                other = bit.bit_length() - 1
                if policy is HitPolicy.ANY and _have_same_outputs(table, at, other):
                    continue
                if len(found) == MOST_TOLD:
                    return [*found, "there are more rules that overlap"]
                found.append(f"rules {at + 1} and {other + 1} both match{_show_example(inputs, at, other)}")
    except _TooMuch:
        found.append("the table is too large to look for all rules that overlap")
    return found


def _slot_inputs(table: Table, budget: _Budget, *, is_unknown_met: bool) -> list[SlottedInput]:
    if len(table.inputs) > MOST_INPUTS or len(table.rows) > MOST_RULES:
        raise _TooMuch
    # There are at most four slots for each cell.
    budget.spend(len(table.inputs) * len(table.rows) * 4)
    return [slot_input(table, column, is_unknown_met=is_unknown_met) for column in range(len(table.inputs))]


def _find_overlapping(inputs: Sequence[SlottedInput], at: int, rules: int, budget: _Budget) -> int:
    """The later rules that overlap with one, as bits."""
    bit = 1 << at
    common = (1 << rules) - (bit << 1)
    for each in inputs:
        budget.spend(len(each.slots))
        reached = 0
        for slot in each.slots:
            if slot.rules & bit:
                reached |= slot.rules
        common &= reached
        if not common:
            return 0
    # Without inputs every rule always matches; the caller has at least two rules then.
    return max(0, common)


def _have_same_outputs(table: Table, one: int, other: int) -> bool:
    texts = [[cell.text for cell in table.rows[at].rule.outputs] for at in (one, other)]
    return texts[0] == texts[1]


def _show_example(inputs: Sequence[SlottedInput], one: int, other: int) -> str:
    both = (1 << one) | (1 << other)
    parts = []
    for each in inputs:
        if each.is_any:
            continue
        slots = [slot for slot in each.slots if slot.rules & both == both]
        if len(slots) == len(each.slots):
            continue
        best = min(slots, key=_judge)
        parts.append(f"{each.label} = {show(best.find_example())}")
    return f" {', '.join(parts)}" if parts else " everything"


def _judge(slot: Slot) -> bool:
    """An end that stands in the table says more than a value in between."""
    return not slot.is_point


# --- gaps ---


def find_gaps(table: Table) -> list[str]:
    """Values that no rule matches, where that gives null: not for tables with a default or that only collect."""
    has_default = any(output.default is not None for output in table.outputs)
    if has_default or get_empty(table.table.hit_policy) is not None or not table.inputs:
        return []
    if not table.rows:
        return ["no rule matches anything, because there are none"]
    budget = _Budget()
    found: list[str] = []
    try:
        inputs = _slot_inputs(table, budget, is_unknown_met=True)
        search = _GapSearch(inputs, len(table.rows), budget, found)
        search.look(0, (1 << len(table.rows)) - 1, [])
    except _TooMuch:
        found.append("the table is too large to look for all values that no rule matches")
    if len(found) > MOST_TOLD:
        return [*found[:MOST_TOLD], "there are more values that no rule matches"]
    return found


class _GapSearch:
    """Goes through the inputs one by one, with the rules that are left for the values chosen so far."""

    def __init__(self, inputs: Sequence[SlottedInput], rules: int, budget: _Budget, found: list[str]) -> None:
        self._inputs = inputs
        self._budget = budget
        self._found = found
        self._closed: set[tuple[int, int]] = set()
        self._always = [(1 << rules) - 1] * (len(inputs) + 1)
        """For each input, the rules that let everything through from there on."""
        for at in range(len(inputs) - 1, -1, -1):
            self._always[at] = self._always[at + 1]
            for slot in inputs[at].slots:
                self._always[at] &= slot.rules

    def look(self, at: int, left: int, chosen: list[str]) -> bool:
        """Whether there is a gap from this input on; what is found is told."""
        if left & self._always[at] or (at, left) in self._closed or len(self._found) > MOST_TOLD:
            return False
        each = self._inputs[at]
        self._budget.spend(len(each.slots))
        groups: dict[int, list[int]] = {}
        for place, slot in enumerate(each.slots):
            groups.setdefault(slot.rules & left, []).append(place)
        has_gap = False
        for rules, places in groups.items():
            is_all = len(places) == len(each.slots)
            path = chosen if is_all or each.is_any else [*chosen, each.describe(places)]
            if not rules:
                self._found.append(f"no rule matches {', '.join(path)}" if path else "no rule matches anything")
                has_gap = True
            elif self.look(at + 1, rules, path):
                has_gap = True
        if not has_gap:
            self._closed.add((at, left))
        return has_gap
