"""Timers: each says when it fires in one way, and texts that are no expressions can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.checks.findings import Findings, name_kind
from holdfast.bpmn.model import TimerEventDefinition, TimerKind
from holdfast.core.times.cron_lines import check_line
from holdfast.core.times.dates import parse_date
from holdfast.core.times.durations import parse_duration
from holdfast.core.times.specs import parse_cycle
from holdfast.errors import InvalidSchedule

_UTC: Final = "UTC"
_EXAMPLES: Final = {
    TimerKind.DURATION: "PT10M",
    TimerKind.DATE: "2030-01-31T09:00:00Z",
    TimerKind.CYCLE: "R3/PT10M",
}


def check_timer(findings: Findings, event: model.FlowNode, definition: TimerEventDefinition) -> None:
    """The timer of an event can be armed."""
    kind, when = definition.kind, definition.when
    if kind is None or when is None:
        found = "it does not" if kind is None else f"its {kind} is empty"
        findings.report(
            event,
            "bad-timer",
            f"Expected the timer to say when it fires, but {found}.",
            "Write a duration (PT10M), a date (2030-01-31T09:00:00Z) or a cycle (R3/PT10M).",
            line=definition.line,
        )
        return
    interrupts = isinstance(event, model.BoundaryEvent) and event.cancel_activity
    if kind is TimerKind.CYCLE and interrupts:
        findings.notice(
            event,
            "cycle-once",
            "Expected a duration or a date at a boundary event that ends its host, but there is a cycle: it fires once.",
            "Make the event non-interrupting, or write a duration.",
            line=definition.line,
        )
    if when.is_static:
        problem = find_problem(kind, when.text)
        if problem:
            findings.report(
                event,
                "bad-timer",
                f"Expected the {kind} of the {name_kind(event)} to be a time, but it is {when.text[:80]!r}: {problem}",
                f"Write it as {_EXAMPLES[kind]!r}, or as an expression behind '='.",
                line=when.line or definition.line,
            )


def find_problem(kind: TimerKind, text: str) -> str:
    """What is wrong with the text of a timer; empty if nothing is."""
    try:
        _READERS[kind](text.strip())
    except InvalidSchedule as error:
        return error.message
    return ""


def _read_cycle(text: str) -> object:
    return parse_cycle(text, _UTC) if text.startswith("R") else check_line(text)


_READERS: Final[Mapping[TimerKind, Callable[[str], object]]] = {
    TimerKind.DURATION: parse_duration,
    TimerKind.DATE: lambda text: parse_date(text, _UTC),
    TimerKind.CYCLE: _read_cycle,
}
