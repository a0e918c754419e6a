"""Functions over numbers: rounding, remainders, roots, logarithms and the like. DMN 10.3.4.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
)
from typing import Final

from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import NUMBERS

_SMALLEST_SCALE: Final = -6111
_LARGEST_SCALE: Final = 6176
"""DMN 10.3.4.5: a scale is in the range [-6111..6176]."""

_EXACT: Final = Context(prec=12_400, Emin=-99_999, Emax=99_999, traps=[])
"""For remainders, which have as many digits as lie between the largest number and the smallest."""
_TWO: Final = Decimal(2)
_STEPS_OF_REMAINDER: Final = 6
_STEPS_OF_ROOT: Final = 2
_STEPS_OF_LOGARITHM: Final = 30
_STEPS_OF_POWER: Final = 16

_MODES: Final[Mapping[str, str]] = {
    "UP": ROUND_UP,
    "DOWN": ROUND_DOWN,
    "CEILING": ROUND_CEILING,
    "FLOOR": ROUND_FLOOR,
    "HALF_UP": ROUND_HALF_UP,
    "HALF_DOWN": ROUND_HALF_DOWN,
    "HALF_EVEN": ROUND_HALF_EVEN,
}
_EXACTLY: Final = "UNNECESSARY"


def _make_rounding(mode: str) -> Callable[..., Decimal]:
    def call(_run: Run, number: Decimal, scale: Decimal = Decimal()) -> Decimal:
        return round_number(number, scale, mode)

    return call


def round_number(number: Decimal, scale: Decimal, mode: str) -> Decimal:
    """A number with so many digits behind the point. Raises Fail if there cannot be so many."""
    if not _SMALLEST_SCALE <= scale <= _LARGEST_SCALE:
        raise Fail(f"the scale is a number from {_SMALLEST_SCALE} to {_LARGEST_SCALE}")
    rounded = number.quantize(Decimal((0, (1,), -int(scale))), rounding=mode, context=NUMBERS)
    # There is no room for all the zeros that were asked for; so there was nothing to round either.
    return NUMBERS.plus(rounded) if rounded.is_finite() else number


def _round_by_mode(_run: Run, number: Decimal, scale: Decimal, mode: str) -> Decimal:
    """Camunda's third parameter, by the names that Java has for it."""
    if mode.upper() == _EXACTLY:
        rounded = round_number(number, scale, ROUND_HALF_EVEN)
        if rounded != number:
            raise Fail(f"the number has more digits, and the mode is {_EXACTLY}")
        return rounded
    rounding = _MODES.get(mode.upper())
    if rounding is None:
        raise Fail(f"the mode is one of {', '.join(_MODES)}, {_EXACTLY}")
    return round_number(number, scale, rounding)


def _get_absolute(_run: Run, number: Decimal) -> Decimal:
    return NUMBERS.abs(number)


def get_modulo(run: Run, dividend: Decimal, divisor: Decimal) -> Decimal:
    """DMN 10.3.4.5: `dividend - divisor * floor(dividend / divisor)`, exactly, and rounded once."""
    if not divisor:
        raise Fail("the divisor is zero")
    run.spend(_STEPS_OF_REMAINDER)
    remainder = _EXACT.remainder(dividend, divisor)
    if remainder and remainder.is_signed() != divisor.is_signed():
        remainder = _EXACT.add(remainder, divisor)
    return NUMBERS.plus(remainder)


def _get_root(run: Run, number: Decimal) -> Decimal:
    run.spend(_STEPS_OF_ROOT)
    if number < 0:
        raise Fail("the number is negative")
    return NUMBERS.sqrt(number)


def _get_logarithm(run: Run, number: Decimal) -> Decimal:
    run.spend(_STEPS_OF_LOGARITHM)
    if number <= 0:
        raise Fail("the number is not positive")
    return NUMBERS.ln(number)


def _get_power_of_e(run: Run, number: Decimal) -> Decimal:
    run.spend(_STEPS_OF_POWER)
    power = NUMBERS.exp(number)
    if not power.is_finite():
        raise Fail("the result is too large")
    return power


def _is_odd(run: Run, number: Decimal) -> bool:
    return get_modulo(run, number, _TWO) == 1


def _is_even(run: Run, number: Decimal) -> bool:
    return not get_modulo(run, number, _TWO)


def _get_random(run: Run) -> Decimal:
    """Camunda: at least 0, and less than 1."""
    return NUMBERS.divide(Decimal(run.random_bits(64)), Decimal(2**64))


_N: Final = ("n", "number")
_SCALE: Final = ("scale", "number")
_NUMBER: Final = ("number", "number")

NUMERIC: Final[Mapping[str, tuple[Form, ...]]] = {
    "decimal": (
        form(_make_rounding(ROUND_HALF_EVEN), _N, _SCALE),
        form(_round_by_mode, _N, _SCALE, ("mode", "string")),
    ),
    "floor": (form(_make_rounding(ROUND_FLOOR), _N, _SCALE, required=1),),
    "ceiling": (form(_make_rounding(ROUND_CEILING), _N, _SCALE, required=1),),
    # DMN wants a scale here; Camunda takes 0 for one that is left out.
    "round up": (form(_make_rounding(ROUND_UP), _N, _SCALE, required=1),),
    "round down": (form(_make_rounding(ROUND_DOWN), _N, _SCALE, required=1),),
    "round half up": (form(_make_rounding(ROUND_HALF_UP), _N, _SCALE, required=1),),
    "round half down": (form(_make_rounding(ROUND_HALF_DOWN), _N, _SCALE, required=1),),
    "abs": (form(_get_absolute, _N),),
    "modulo": (form(get_modulo, ("dividend", "number"), ("divisor", "number")),),
    "sqrt": (form(_get_root, _NUMBER),),
    "log": (form(_get_logarithm, _NUMBER),),
    "exp": (form(_get_power_of_e, _NUMBER),),
    "odd": (form(_is_odd, _NUMBER),),
    "even": (form(_is_even, _NUMBER),),
    "random number": (form(_get_random),),
}
