"""Evaluating the expressions of a process: at the time of the turn, within limits; what fails is a fault of its element."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from holdfast import dmn, feel
from holdfast.bpmn.executable import Text
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.values import Variable, from_feel, make_text, show_value
from holdfast.core.ids import derive_entropy
from holdfast.core.instants import Instant, to_datetime
from holdfast.core.payloads import CONFIDENCE
from holdfast.errors import FeelError
from holdfast.feel.running import Run as feel_run  # noqa: N813  # the run of a process has the same name

MOST_STEPS: Final = 300_000
"""How many steps one expression may take: a fraction of a second."""
STEPS_OF_DECISION: Final = 1_000
"""How many steps a decision counts for, whatever it takes."""
LONGEST_NAME: Final = 255
"""How many bytes a name or key may have that an expression makes: of a message, a job type, a process, a person."""


class Evaluator:
    """Evaluates expressions of one execution within one turn."""

    __slots__ = ("_count", "_now", "_source", "limit", "steps")

    def __init__(self, source: str, now: Instant, limit: int) -> None:
        self._source = source
        """What is drawn by chance follows from it: it differs for each event of each execution."""
        self._now = now
        self._count = 0
        self.steps = 0
        """How many steps all expressions took so far."""
        self.limit = limit
        """How many bytes the value of a variable may have."""

    def evaluate(self, expression: feel.Expression, view: Mapping[str, Any], what: str, kind: str = "expression") -> Any:
        """The FEEL value of an expression. Raises Fault if it fails: null with a reason for it counts."""
        warnings: list[feel.FeelWarning] = []
        value = self._evaluate(expression, view, (what, kind), warnings)
        if value is None and warnings:
            raise Fault(kind, f"Expected {what} to have a value, but {_tell(warnings[0])} ({_shorten(expression.text)}).")
        return value

    def _evaluate(
        self,
        expression: feel.Expression,
        view: Mapping[str, Any],
        about: tuple[str, str],
        warnings: list[feel.FeelWarning] | None,
    ) -> Any:
        run = feel_run(warnings, self._read_clock, self._draw, MOST_STEPS)
        try:
            return expression.evaluate_within(view, run)
        except FeelError as error:
            what, kind = about
            raise Fault(
                kind, f"Expected {what} to be evaluated, but: {error.message} ({_shorten(expression.text)})"
            ) from None
        finally:
            self.steps += run.limit - run.steps

    def evaluate_text(self, given: Text, view: Mapping[str, Any], what: str, kind: str = "expression") -> Any:
        """The text itself, or the FEEL value of its expression."""
        return given.text if given.expression is None else self.evaluate(given.expression, view, what, kind)

    def make_variable(self, given: Text, view: Mapping[str, Any], what: str, kind: str = "expression") -> Variable:
        """A text or the value of its expression as a variable. Raises Fault.

        As everywhere in FEEL, what is not there is null, and so is what cannot be computed: no fault, as in Camunda 8.
        """
        if given.expression is None:
            return make_text(given.text)
        return self.check_size(from_feel(self._evaluate(given.expression, view, (what, kind), None), what), what)

    def check_size(self, variable: Variable, what: str) -> Variable:
        """The variable itself. Raises Fault if it is too large to be stored."""
        if len(variable.raw) > self.limit:
            raise Fault(
                "expression",
                f"Expected {what} to have at most {self.limit:,} bytes as JSON, but it has {len(variable.raw):,}. "
                "Store it elsewhere and keep a reference, or raise the engine's payload_limit.",
            )
        return variable

    def holds(self, condition: feel.Expression, view: Mapping[str, Any], what: str) -> bool:
        """Whether a condition is true. Raises Fault if it is neither true nor false."""
        value = self.evaluate(condition, view, what, "condition")
        if type(value) is not bool:
            raise Fault(
                "condition",
                f"Expected {what} to be true or false, but it is {show_value(value)} ({_shorten(condition.text)}). "
                "Set the variables that it reads, or correct the condition in a new version.",
            )
        return value

    def decide(self, model: dmn.Model, decision: str, inputs: Mapping[str, Any]) -> dmn.Result:
        """Let a decision model decide, at the time of the turn. Raises DmnError or FeelError."""
        self.steps += STEPS_OF_DECISION
        return model.evaluate(decision, inputs, clock=self._read_clock, random=self._draw, max_steps=MOST_STEPS)

    def make_name(self, given: Text, view: Mapping[str, Any], what: str, kind: str) -> str:
        """A text that is not empty and can be stored as a name. Raises Fault; a number is written out."""
        value = self.evaluate_text(given, view, what, kind)
        if type(value) is Decimal:
            value = format(value, "f") if abs(value.adjusted()) < LONGEST_NAME else str(value)
        if type(value) is not str or not value:
            raise Fault(kind, f"Expected {what} to be a text that is not empty, but it is {show_value(value)}.")
        return check_name(value, what, kind)

    def _read_clock(self) -> datetime:
        return to_datetime(self._now)

    def _draw(self, bits: int) -> int:
        self._count += 1
        drawn = 0
        for part in range((bits + 127) // 128):
            drawn = (drawn << 128) | derive_entropy(self._source, self._now, self._count, part)
        return drawn >> (-bits % 128)


def check_name(text: str, what: str, kind: str) -> str:
    """The text itself. Raises Fault if it is too long for a name, or has signs that cannot be shown or stored."""
    if not text.isprintable() or len(text.encode()) > LONGEST_NAME:
        raise Fault(kind, f"Expected {what} to be a printable text of at most {LONGEST_NAME} bytes, but it is not.")
    return text


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def _tell(warning: feel.FeelWarning) -> str:
    """Why an expression is null; it may quote values."""
    return "it is null" if CONFIDENCE else warning.message
