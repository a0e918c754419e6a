"""Python beside FEEL: durations, ranges and functions in both directions, and clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from holdfast import feel
from holdfast.errors import DeterminismError, TurnTooLong
from holdfast.feel import DaysTimeDuration

NOW = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def evaluate(text: str, **context: Any) -> Any:
    return feel.evaluate(text, context)


def warn(text: str, **context: Any) -> str:
    """Why the value is null."""
    warnings: list[feel.FeelWarning] = []
    assert feel.evaluate(text, context, warnings=warnings) is None
    return str(warnings[0])


# --- durations ---


@pytest.mark.parametrize("text", ["PT0S", "P1DT2H", "-P1DT0.000001S", "P999999999DT23H", "-P999999999D", "PT0.5S"])
def test_duration_is_the_timedelta_of_the_same_length(text: str) -> None:
    duration = feel.evaluate(f'duration("{text}")')
    python = duration.to_timedelta()

    assert type(python) is timedelta
    assert duration == python
    assert python == duration
    assert hash(duration) == hash(python)
    assert len({duration, python}) == 1
    assert evaluate("x", x=python) == duration


def test_durations_and_timedeltas_have_one_order() -> None:
    hour, day = DaysTimeDuration(3_600 * 10**9), timedelta(days=1)

    assert hour < day
    assert day > hour
    assert day >= hour
    assert hour != day
    assert sorted([day, hour]) == [hour, day]  # type: ignore[type-var]
    assert hour != 3_600
    assert hour != feel.YearsMonthsDuration(0)
    with pytest.raises(TypeError):
        _ = hour < 5


def test_duration_that_no_timedelta_can_hold_equals_none() -> None:
    short, long = feel.evaluate('duration("PT0.000000001S")'), feel.evaluate('duration("P1000000000D")')

    assert short.to_timedelta() == timedelta()
    assert feel.evaluate('duration("-PT0.0000015S")').to_timedelta() == timedelta(microseconds=-1)
    assert short != timedelta()
    assert hash(short) == hash(DaysTimeDuration(1))
    assert long != timedelta.max
    assert long > timedelta.max
    with pytest.raises(feel.FeelError, match=r"^Expected .+, but .+\. .+"):
        long.to_timedelta()


# --- ranges ---


def test_python_asks_whether_a_value_is_in_a_range() -> None:
    assert 5 in feel.Range(1, 5)
    assert 5 not in feel.Range(1, 5, end_included=False)
    assert Decimal("1.5") in feel.evaluate("[1..2]")
    assert 0.5 not in feel.evaluate("[1..2]")
    assert date(2024, 1, 1) in feel.evaluate('[@"2023-01-01"..@"2025-01-01"]')
    assert timedelta(hours=1) in feel.evaluate('< @"PT2H"')
    assert 10 in feel.evaluate("(= 10)")
    assert 10 not in feel.evaluate("(!= 10)")
    assert "a" not in feel.Range(1, 5)
    assert None not in feel.Range(1, 5)
    assert 1 not in feel.Range(None, 5)


# --- functions of FEEL in Python ---


def test_function_of_an_expression_is_called_from_python() -> None:
    area = feel.evaluate("function(width: number, height) width * height")

    assert repr(area) == "Function(name='', parameters=('width', 'height'))"
    assert area(3, 4) == 12
    assert area(width=3, height=Decimal("0.5")) == Decimal("1.5")
    assert area("a", 4) is None
    assert area(3) is None
    with pytest.raises(feel.FeelError, match="by position or by name"):
        area(3, height=4)
    with pytest.raises(feel.FeelError, match="Expected a value that FEEL has"):
        area(object(), 4)


def test_built_in_function_is_called_from_python() -> None:
    substring = feel.evaluate("substring")

    assert substring("abc", 2) == "bc"
    assert substring(**{"string": "abc", "start position": 2}) == "bc"
    assert substring() is None


def test_function_keeps_what_it_saw_and_the_clock_and_limit_of_its_evaluation() -> None:
    after = feel.evaluate("{t: total, f: function(n) now() + n}.f", {"total": 1}, clock=lambda: NOW)
    slow = feel.evaluate("function(n) count(for i in 1..n return i)", max_steps=100)

    assert after(timedelta(hours=1)) == NOW + timedelta(hours=1)
    assert slow(10) == 10
    assert slow(10) == 10
    with pytest.raises(feel.FeelLimitExceeded):
        slow(1_000)
    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate("{f: function(n) f(n + 1)}.f")(1)


# --- functions of Python in FEEL ---


class Prices:
    def find(self, name: str, factor: Decimal = Decimal(1)) -> Decimal:
        return len(name) * factor

    def __call__(self, n: Decimal) -> Decimal:
        return n + 1


def add(first: Any, second: Any = 10) -> Any:
    return first + second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(1, 2)", 3),
        ("add(1)", 11),
        ("add(first: 1, second: 2)", 3),
        ("add(second: 2, first: 1)", 3),
        ("add(first: 1)", 11),
        ('add("a", "b")', "ab"),
        ('find(name: "abc", factor: 2)', 6),
        ("prices(1)", 2),
        ("twice(3)", 6),
        ("tools.add(1, 2)", 3),
        ("tools.list[1](1)", 11),
        ("{f: add, r: f(second: 1, first: 1)}.r", 2),
        ("for i in [1, 2] return add(i)", [11, 12]),
        ("sort([1, 3, 2], more)", [3, 2, 1]),
        ("add instance of function", True),
        ("add = add", True),
        ("length([1, 2])", 2),
        ("number(5)", "own"),
        ("any number(1, 2, 3)", 3),
        ("now()", NOW),
        ("half(3)", Decimal("1.5")),
        ("pair(1)", {"n": Decimal(1), "wait": DaysTimeDuration(10**9)}),
        ("nothing()", None),
    ],
)
def test_python_function_of_the_context_is_called(text: str, expected: Any) -> None:
    context: dict[str, Any] = {
        "add": add,
        "find": Prices().find,
        "prices": Prices(),
        "twice": partial(lambda a, b: a * b, 2),
        "tools": {"add": add, "list": [add]},
        "more": lambda x, y: x > y,
        "length": len,
        "number": lambda _n: "own",
        "any number": lambda *given: len(given),
        "now": lambda: NOW,
        "half": lambda n: float(n) / 2,
        "pair": lambda n: {"n": n, "wait": timedelta(seconds=1)},
        "nothing": lambda: None,
    }

    assert feel.evaluate(text, context) == expected
    assert feel.compile(text, names=["any number"]).evaluate(context) == expected


def test_python_function_that_raises_gives_null_with_a_warning() -> None:
    assert "it raised ZeroDivisionError: division by zero" in warn("f(1)", f=lambda n: 1 / 0 + n)
    assert "it raised KeyError" in warn("f(1)", f=lambda n: {}[n])
    assert "its result cannot be used" in warn("f()", f=lambda: object() or None)
    assert "surrogate" in warn("f()", f=lambda: "\ud800")
    assert "its parameters are (first, second=10), but missing" in warn("add()", add=add_untyped)
    assert "too many positional arguments" in warn("add(1, 2, 3)", add=add_untyped)
    assert "unexpected keyword argument" in warn("add(first: 1, third: 3)", add=add_untyped)
    assert evaluate("[f(1), 2]", f=lambda n: 1 / 0 + n) == [None, 2]


class Mute(Exception):
    """An exception that fails when it is asked what it says."""

    def __str__(self) -> str:
        raise RuntimeError("never to be seen")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Mute(), "it raised Mute: "),
        (ValueError("one\nline"), "it raised ValueError: one line"),
        (ValueError("half \ud83d"), "it raised ValueError: half ?"),
    ],
)
def test_exception_that_cannot_be_told_is_a_warning_still(error: Exception, told: str) -> None:
    def fail(n: object) -> object:
        raise error

    assert warn("f(1)", f=fail).endswith(told)


def add_untyped(first, second=10):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return first + second


def test_async_function_in_disguise_gives_null_with_a_warning() -> None:
    assert "async" in warn("f()", f=partial(call, wait))


def test_python_function_cannot_change_what_it_is_given() -> None:
    items = ["a", {"b": ["c"]}]

    assert evaluate("[f(items), items]", items=items, f=lambda given: given[1]["b"].append(given.pop(0)))[1] == items
    assert items == ["a", {"b": ["c"]}]


def test_python_function_cannot_get_round_the_limits() -> None:
    calls: list[int] = []

    def count(given: Callable[..., Any]) -> None:
        for _ in range(1_000):
            try:
                given(100)
            except feel.FeelLimitExceeded:
                calls.append(1)

    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate("[f(function(n) count(for i in 1..n return i)), 1]", {"f": count}, max_steps=1_000)
    assert len(calls) > 900
    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate("for i in 1..1000 return f(i)", {"f": lambda n: n}, max_steps=1_500)
    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate("f()", {"f": lambda: feel.evaluate("for i in 1..10 return i", max_steps=5)})
    with pytest.raises(feel.FeelLimitExceeded):
        feel.evaluate("{loop: function(n) f(loop, n)}.loop(1)", {"f": lambda loop, n: loop(n)})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TurnTooLong("too long"), DeterminismError("no"), MemoryError()])
def test_what_ends_a_turn_or_the_process_is_not_caught(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        evaluate("f()", f=fail)


def call(function: Callable[[], Any]) -> Any:
    return function()


async def wait() -> int:
    return 1


@dataclass
class Plain:
    a: int


@pytest.mark.parametrize("value", [wait, Plain, int, object()])
def test_what_cannot_be_called_here_is_refused(value: Any) -> None:
    with pytest.raises(feel.FeelError, match="Expected a value that FEEL has"):
        evaluate("f", f=value)


def test_class_beside_a_built_in_function_does_not_hide_it() -> None:
    assert evaluate('date("2024-02-29")', date=date) == date(2024, 2, 29)


# --- clocks ---


@pytest.mark.parametrize("now", [datetime(2024, 2, 29, 12, 30), date(2024, 2, 29), None, "now"])  # noqa: DTZ001
@pytest.mark.parametrize("text", ["now()", "today()", 'now() + duration("PT1H")'])
def test_clock_without_a_time_zone_is_refused(now: Any, text: str) -> None:
    with pytest.raises(feel.FeelError, match="Expected the clock to give a datetime with a time zone"):
        feel.evaluate(text, clock=lambda: now)
    assert feel.evaluate("1 + 1", clock=lambda: now) == 2
