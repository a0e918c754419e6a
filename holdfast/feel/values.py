"""The values of FEEL, as plain Python wherever Python can hold them.

| FEEL | Python |
|---|---|
| number | `Decimal` with 34 digits |
| string, boolean, null | `str`, `bool`, `None` |
| list, context | `list`, `dict` with text keys; never changed once made |
| date, time, date and time | `date`, `time`, `datetime`; `temporal.values` has types for what these cannot hold |
| days and time duration | `DaysTimeDuration` |
| years and months duration | `YearsMonthsDuration` |
| range | `Range` |
| function | `Function` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from holdfast.feel.running import Run

Value: TypeAlias = Any
"""One of the above."""

NUMBERS: Final = Context(prec=34, rounding=ROUND_HALF_EVEN, Emin=-6143, Emax=6144, clamp=1, traps=[])
"""DMN 10.3.2.3.1: IEEE 754-2008 decimal128. Nothing is raised: what is not finite afterwards is null."""


@dataclass(frozen=True, slots=True)
class Range:
    """Everything between two ends, each of which may belong to it; an end that is None, and says so, is none.

    DMN 10.3.2.7. `(1..2)` excludes both ends; `< 2` has no start.
    """

    start: Value
    end: Value
    start_included: bool = True
    end_included: bool = True
    has_start: bool = True
    """Whether there is a start at all: null can be one, and then nothing is known to be inside."""
    has_end: bool = True

    def __contains__(self, value: Any) -> bool:
        """Whether a value of Python lies in it, as FEEL's `in` has it; what cannot be compared with its ends does not."""
        from holdfast.feel.comparing import is_in_range  # noqa: PLC0415 - what compares values knows them, not they it
        from holdfast.feel.python_values import to_feel  # noqa: PLC0415 - the same

        return is_in_range(to_feel(value), to_feel(self)) is True


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function: of the language, of an expression, of a decision model."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[[Run, Sequence[Value]], Value] = field(repr=False)
    """Called with one argument for each parameter."""
    types: tuple[Any, ...] = field(default=(), repr=False)
    """Of its parameters, as `syntax` has them, where an expression defines it; None where one declares none."""
    call_by_name: Callable[[Run, Mapping[str, Value]], Value] | None = field(default=None, repr=False)
    """Called with arguments by the names of parameters, where some of these may be left out, or there are several forms."""
    made_by: Run | None = field(default=None, repr=False)
    """The evaluation that defined it, if an expression did: what it calls from Python has its clock and its limits."""

    def __call__(self, *arguments: Any, **named: Any) -> Value:
        """Its value for arguments of Python; None where FEEL gives null. Raises FeelError as an evaluation does."""
        from holdfast.feel.python_functions import call_from_python  # noqa: PLC0415 - calling knows functions, not they it

        return call_from_python(self, arguments, named)
