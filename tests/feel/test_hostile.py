"""Expressions that were made to hang, to fill the memory or to overflow the stack: each ends soon, well or in an error."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

import pytest

from holdfast import feel
from holdfast.errors import FeelError, FeelLimitExceeded, FeelSyntaxError
from holdfast.feel.running import MOST_STEPS

SECONDS: Final = 30
"""Far more than any of them takes, even on a busy machine."""
STEPS: Final = MOST_STEPS // 5
LONGEST: Final = 190_000
"""Characters of a text that is as long as texts may be, or nearly."""

NESTED: Final[Mapping[str, tuple[str, str, str]]] = {
    "parentheses": ("(", "1", ")"),
    "lists": ("[", "", "]"),
    "contexts": ("{a: ", "1", "}"),
    "signs": ("-", "1", ""),
    "nots": ("not(", "true", ")"),
    "calls": ("abs(", "1", ")"),
    "filters": ("", "[1]", "[1]"),
    "filters in filters": ("[1][", "1", "]"),
    "paths": ("", "a", ".a"),
    "calls in a row": ("", "f", "()"),
    "sums": ("", "1", " + 1"),
    "powers": ("", "2", " ** 1"),
    "conjunctions": ("", "true", " and true"),
    "comparisons": ("", "1", " = 1"),
    "conditions": ("if true then ", "1", " else 2"),
    "elses": ("if false then 1 else ", "2", ""),
    "loops": ("for x in [1] return ", "1", ""),
    "quantifiers": ("some x in [1] satisfies ", "true", ""),
    "functions": ("function(x) ", "1", ""),
    "functions that are called": ("(function(x) ", "x", ")(1)"),
    "types": ("1 instance of " + "list<", "number", ">"),
    "ranges": ("[", "1..2", "]"),
    "ins": ("", "1", " in 1"),
    "betweens": ("", "1", " between 1 and 1"),
    "tests in parentheses": ("1 in (", "1", ")"),
    "tests that go on": ("1 in (", "1", ") + 1"),
    "tests that are ranges": ("1 in (", "1", "..2)"),
    "tests that do not end": ("1 in (", "1", ""),
    "parentheses that do not end": ("(", "", ""),
    "lists that do not end": ("[", "", ""),
    "contexts that do not end": ("{a:", "", ""),
    "calls that do not end": ("a(b ", "", ""),
    "at signs": ("@", '"a"', ""),
}
"""What is repeated before, what stands in the middle, and what is repeated behind it."""

LONG: Final[Mapping[str, tuple[str, str, str]]] = {
    "items": ("[1", ",1", "]"),
    "arguments": ("sum(1", ",1", ")"),
    "named arguments": ("f(a:1", ",b:1", ")"),
    "entries": ("{a:1", ",b:1", "}"),
    "iterators": ("for x in [1]", ",x in [1]", " return 1"),
    "parameters": ("function(x", ",x", ") 1"),
    "tests": ("1 in (1", ",1", ")"),
    "words": ("", "a ", ""),
    "words where a colon may follow": ("f(", "a ", ")"),
    "words where a colon has to follow": ("{", "a ", "}"),
    "words with signs": ("f(a", "-b", ")"),
    "space": ("", " ", "1"),
    "space where a colon may follow": ("f(a", " ", ")"),
    "space where a colon has to follow": ("{a", " ", "}"),
    "lines": ("", "\n", "1 +"),
    "digits": ("", "9", ""),
    "zeros": ("0.", "0", "1"),
    "comment that does not end": ("/*", "*", ""),
    "comments": ("", "/**/", "1"),
    "string": ('"', "a", '"'),
    "string that does not end": ('"', "a", ""),
    "escapes": ('"', "\\u0041", '"'),
    "backslashes": ('"', "\\", ""),
    "quoted name that does not end": ("`", "a", ""),
    "dots": ("1", ".", ""),
}
"""What stands once, what is repeated, and what ends it."""

ENDLESS: Final[Mapping[str, str]] = {
    "long loop": "for i in 1..1000000000 return i",
    "backward loop": "for i in 1000000000..1 return i",
    "loops in loops": "for a in 1..1000, b in 1..1000, c in 1..1000 return 1",
    "loop over far numbers": "for i in 10**30..10**30+10**9 return 1",
    "loop over dates": 'for d in date("0001-01-01")..date("999999999-12-31") return d',
    "quantifier": "every i in 1..1000000000 satisfies i > 0",
    "recursion": "{f: function(n) f(n + 1), r: f(1)}.r",
    "recursion that forks": "{f: function(n) if n > 90 then 1 else f(n + 1) + f(n + 1), r: f(1)}.r",
    "recursion in a loop": "{f: function(n) if n > 90 then 1 else for i in 1..10 return f(n + 1), r: f(1)}.r",
    "sorting by a slow function": "sort(for i in 1..10000 return i, function(a, b) count(for k in 1..1000 return k) > a)",
    "filter in a filter": "(for i in 1..10000 return i)[count((for k in 1..10000 return k)[item > 0]) > 0]",
    "doubled list": "count(flatten(for i in 1..60 return partial))",
    "doubled text": "string(for i in 1..60 return partial)",
    "doubled text in parts": 'for i in 1..60 return string join(concatenate(["ab"], partial), "xx")',
    "doubled list compared": "(for i in 1..60 return partial) = (for i in 1..60 return partial)",
    "doubled list searched": "list contains([for i in 1..60 return partial], (for i in 1..60 return partial))",
    "doubled list made distinct": "distinct values([for i in 1..60 return partial, for i in 1..60 return partial])",
    "doubled list and its type": f"(for i in 1..60 return partial) instance of {'list<' * 30}Any{'>' * 30}",
    "doubled list for a typed parameter": f"(function(x: {'list<' * 30}Any{'>' * 30}) 1)(for i in 1..60 return partial)",
    "joins in a loop": "for i in 1..100000 return count(append(partial, 1))",
    "replacement that grows": 'replace({0}, "a", {0})'.format('string join(for i in 1..10000 return "a", "")'),
    "split into many": 'count(split(string join(for i in 1..1000000 return "ab", ""), "b"))',
}

HARD: Final[Mapping[str, str]] = {
    "every value of many": "count(distinct values(for i in 1..100000 return i))",
    "regular expression that tries": 'matches(string join(for i in 1..5000 return "a", ""), "^(a+)+b$")',
    "regular expression that forks": 'matches(string join(for i in 1..5000 return "a", ""), "^(a|aa)*b$")',
    "regular expression with counts": 'matches("a", "((a{1,1000}){1,1000}){1,1000}")',
    "power": "10 ** 1000000000",
    "power of powers": "9 ** 9 ** 9 ** 9 ** 9",
    "negative power": "2 ** -1000000000",
    "fraction to a power": "1.0000001 ** 1000000000.5",
    "exponential": "exp(10 ** 6000)",
    "logarithm": "log(10 ** -6000)",
    "root": "sqrt(10 ** 6000)",
    "product": "(10 ** 6000) * (10 ** 6000)",
    "remainder": "modulo(10 ** 6000, 3)",
    "negative remainder": "modulo(-10 ** 6000, 7.1)",
    "digits to keep": "decimal(1.5, 1000000000)",
    "digits to drop": "round up(1.5, -1000000000)",
    "digits in between": "round half down(10 ** 6000, 6000)",
    "text of a number": "string length(string(10 ** 6144))",
    "number of a text": 'number("1e999999999")',
    "number with many digits": f'number("{"9" * 5000}")',
    "position": "substring(s, 10 ** 300, 10 ** 300)",
    "position from behind": "sublist([1, 2, 3], -10 ** 300)",
    "index": "[1, 2, 3][10 ** 300]",
    "index between items": "[1, 2, 3][1.5]",
    "duration": 'duration("P999999999999999999999999D") * 10 ** 300',
    "months": 'duration("P1M") * 10 ** 6000',
    "month divided": 'duration("P1M") / 10 ** -6000',
    "date": 'date("999999999-12-31") + duration("P999999999Y")',
    "date by parts": "date(10 ** 300, 10 ** 300, 10 ** 300)",
    "time by parts": "time(10 ** 300, 0, 0)",
    "date and time": 'date and time("2020-01-01T00:00:00") + duration("P1D") * 10 ** 30',
    "weeks": 'week of year(date("999999999-12-31"))',
    "last day": 'last day of month(date("-999999999-02-01"))',
    "range": "count([1..10 ** 300])",
    "number in a range": "10 ** 300 in [1..10 ** 6000]",
    "insertion": "insert before([1], -10 ** 300, 2)",
    "scale": "round half up(1, 10 ** 300)",
}

DEEP: Final = "(for i in 1..20000 return [partial[-1]])[-1]"


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails what takes longer, also in the middle of it."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tell(text: str, context: Mapping[str, object] | None = None, steps: int = MOST_STEPS) -> str:
    """What becomes of it, as a word. Raises whatever is not ours, and if it takes long."""
    with at_most(SECONDS):
        try:
            feel.evaluate(text, context or {}, max_steps=steps)
        except FeelLimitExceeded:
            return "limit"
        except FeelSyntaxError:
            return "syntax"
        except FeelError:
            return "error"
    return "value"


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("times", [30, 48, 90, 99, 1_000, LONGEST])
def test_text_that_is_deep_ends_soon(name: str, times: int) -> None:
    before, middle, behind = NESTED[name]
    times = min(times, LONGEST // len(before + behind))

    assert tell(before * times + middle + behind * times) in ("value", "limit", "syntax")


@pytest.mark.parametrize("name", LONG)
def test_text_that_repeats_itself_ends_soon(name: str) -> None:
    head, repeated, tail = LONG[name]

    assert tell(head + repeated * (LONGEST // len(repeated)) + tail) in ("value", "limit", "syntax")


@pytest.mark.parametrize("name", ENDLESS)
def test_work_without_end_meets_the_limit(name: str) -> None:
    assert tell(ENDLESS[name], steps=STEPS) == "limit"


@pytest.mark.parametrize("name", HARD)
def test_huge_quantities_give_a_value_soon(name: str) -> None:
    assert tell(HARD[name], {"s": "abc"}) == "value"


@pytest.mark.parametrize(
    "text", [DEEP, f"string({DEEP})", f"flatten({DEEP})", f"{DEEP} = {DEEP}", f"distinct values([{DEEP}, 1])"]
)
def test_value_that_is_nested_deeply_does_not_overflow_the_stack(text: str) -> None:
    assert tell(text) in ("value", "limit")


def test_deeply_nested_value_of_the_context_does_not_overflow_the_stack() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]

    for text in ("v", "string(v)", "v = v", "flatten(v)", "v[1]", "is defined(v)"):
        assert tell(text, {"v": deep}) in ("value", "limit", "error")


def test_context_that_contains_itself_does_not_overflow_the_stack() -> None:
    around: dict[str, object] = {}
    around["me"] = around

    for text in ("v.me.me = null", "string(v)", "v = v"):
        assert tell(text, {"v": around}) in ("value", "limit", "error")
