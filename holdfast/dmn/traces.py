"""What an evaluation did, for a person to look at: which decisions, with which inputs, by which rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.feel.json_values import JsonWriter, look_to_shown_json
from holdfast.feel.running import MOST_BYTES, MOST_STEPS, FeelWarning, Run
from holdfast.feel.spots import Spot
from holdfast.feel.values import Value

MOST_TRACED: Final = 1_000
"""Decisions, and tables of one decision, that are kept. The others are counted."""
MOST_RULES: Final = 20_000
"""Matched rules of all tables that are kept: a table whose rules would be more is left out."""


@dataclass(frozen=True, slots=True)
class TracedRule:
    """A rule that matched. The outputs have their names; a single one may have none."""

    number: int
    id: str
    outputs: tuple[tuple[str, Value], ...]
    annotations: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """The rule in JSON types; outputs and annotations are lists of objects with a `name`."""
        return _write_rule(self, _start())


@dataclass(frozen=True, slots=True)
class TracedTable:
    """A decision table that was evaluated: of the decision itself, of a part of it, or of knowledge that it called."""

    name: str
    hit_policy: str
    inputs: tuple[tuple[str, Value], ...]
    """Labels and values."""
    rules: tuple[TracedRule, ...]
    value: Value

    def to_json(self) -> dict[str, Any]:
        """The table in JSON types, with its inputs and with the rules that matched."""
        return _write_table(self, _start())


@dataclass(frozen=True, slots=True)
class TracedDecision:
    """A decision that was evaluated: its value, and the tables that led to it."""

    name: str
    id: str
    value: Value
    tables: tuple[TracedTable, ...]

    def to_json(self) -> dict[str, Any]:
        """The decision in JSON types, with the tables that led to its value."""
        return _write_decision(self, _start())


@dataclass(frozen=True, slots=True)
class Trace:
    """All decisions that were evaluated, each behind those that it needed."""

    decisions: tuple[TracedDecision, ...]
    left_out: int = 0
    """How many decisions and tables were too many to be kept."""

    def __iter__(self) -> Iterator[TracedDecision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: int) -> TracedDecision:
        return self.decisions[index]

    def to_json(self) -> list[dict[str, Any]]:
        """As JSON: values are as `feel.to_json` has them, and functions are shown.

        Raises FeelLimitExceeded if that is too much.
        """
        writer = _start()
        return [_write_decision(decision, writer) for decision in self.decisions]


class DecisionRun(Run):
    """One evaluation of a model: a run that keeps a trace, and names the decision in its warnings."""

    __slots__ = ("decisions", "left_out", "now_in", "rules_left", "tables")

    def __init__(
        self,
        warnings: list[FeelWarning] | None = None,
        clock: Callable[[], datetime] | None = None,
        random: Callable[[int], int] | None = None,
        steps: int = MOST_STEPS,
        room: int = MOST_BYTES,
    ) -> None:
        super().__init__(warnings, clock, random, steps, room)
        self.decisions: list[TracedDecision] = []
        self.tables: list[TracedTable] = []
        self.now_in = ""
        self.left_out = 0
        self.rules_left = MOST_RULES

    def warn(self, message: str, spot: Spot | None = None) -> None:
        """As of any run, with the name of the decision before it."""
        if self.warnings is not None:
            super().warn(f"{self.now_in}: {message}" if self.now_in else message, spot)

    def keep_table(self, table: TracedTable) -> None:
        """A table was evaluated for the decision that is being made."""
        if len(self.tables) < MOST_TRACED and len(table.rules) <= self.rules_left:
            self.rules_left -= len(table.rules)
            self.tables.append(table)
        else:
            self.left_out += 1

    def keep_decision(self, decision: TracedDecision) -> None:
        """Add a decision to the trace; one too many is only counted."""
        if len(self.decisions) < MOST_TRACED:
            self.decisions.append(decision)
        else:
            self.left_out += 1


# --- as JSON ---


def _start() -> JsonWriter:
    return JsonWriter(look_to_shown_json)


def _write_pairs(pairs: tuple[tuple[str, Value], ...], writer: JsonWriter) -> list[dict[str, Any]]:
    return [{"name": name, "value": writer.write(value)} for name, value in pairs]


def _write_rule(rule: TracedRule, writer: JsonWriter) -> dict[str, Any]:
    return {
        "number": rule.number,
        "id": rule.id,
        "outputs": _write_pairs(rule.outputs, writer),
        "annotations": [{"name": name, "text": text} for name, text in rule.annotations],
    }


def _write_table(table: TracedTable, writer: JsonWriter) -> dict[str, Any]:
    return {
        "name": table.name,
        "hit_policy": table.hit_policy,
        "inputs": _write_pairs(table.inputs, writer),
        "rules": [_write_rule(rule, writer) for rule in table.rules],
        "value": writer.write(table.value),
    }


def _write_decision(decision: TracedDecision, writer: JsonWriter) -> dict[str, Any]:
    tables = [_write_table(table, writer) for table in decision.tables]
    return {"name": decision.name, "id": decision.id, "value": writer.write(decision.value), "tables": tables}
