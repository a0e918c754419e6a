"""Expressions of start events: evaluated when a process is deployed, in an empty context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast import feel
from holdfast.bpmn.problems import Problem
from holdfast.core.ids import check_identifier
from holdfast.core.instants import to_datetime
from holdfast.errors import FeelError, HoldfastError
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.values import TYPE_NAMES

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.engine.processes.known_definitions import StartMark, TimerMark
    from holdfast.engine.processes.reading_files import Defined


class _Failed(Exception):
    """An expression has no value that a start event can use; it says why."""


def evaluate_starts(
    defined: Sequence[Defined], now: Instant, check_timer: Callable[[TimerMark], object]
) -> tuple[list[Defined], list[Problem]]:
    """The definitions with the texts that names and timers of their start events stand for, and what is wrong with them.

    `check_timer` raises HoldfastErrors for timers that say no time.
    """
    problems: list[Problem] = []
    found: list[Defined] = []
    for one in defined:
        starts: list[StartMark] = []
        timers: list[TimerMark] = []
        for mark in one.starts:
            try:
                name = _evaluate(mark.name, now, "the name of a message or signal")
                starts.append(replace(mark, name=check_identifier(name, "the name of a message or signal")))
            except (_Failed, HoldfastError) as error:
                problems.append(_make_problem(one, mark.element, error, "start-name"))
        for timer in one.timers:
            try:
                evaluated = replace(timer, text=_evaluate(timer.text, now, "a timer"))
                check_timer(evaluated)
                timers.append(evaluated)
            except (_Failed, HoldfastError) as error:
                problems.append(_make_problem(one, timer.element, error, "timer"))
        found.append(replace(one, starts=tuple(starts), timers=tuple(timers)) if starts or timers else one)
    return found, problems


def _evaluate(text: str, now: Instant, what: str) -> str:
    if not text.startswith("="):
        return text
    try:
        value: Any = feel.evaluate(text[1:], {}, clock=lambda: to_datetime(now))
    except FeelError as error:
        raise _Failed(f"Expected {what} to have a value at deployment, but: {error}") from error
    if type(value) in TYPE_NAMES:
        return to_text(value)
    if not isinstance(value, str):
        raise _Failed(
            f"Expected {what} to be a text at deployment, where there are no variables, but it is {value!r:.80}. "
            "Write a constant, or an expression without variables."
        )
    return value


def _make_problem(one: Defined, element: str, error: Exception, code: str) -> Problem:
    """What is wrong with a start event. Its message says the remedy as well."""
    return Problem(one.file.name, one.line, element, str(error), "", code=code)
