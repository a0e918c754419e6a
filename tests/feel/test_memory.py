"""Expressions that were made to fill the memory, or to be slow in few steps: they meet a limit, soon, and stay small."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from holdfast import feel
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.running import LONGEST_WARNING, MOST_BYTES, MOST_STEPS, MOST_WARNINGS

SECONDS: Final = 8
"""Of processor time. They take at most one where nothing else runs."""
ROOM: Final = 3 * MOST_BYTES
"""Bytes that all of them together may take, at most, at a time: what an evaluation may make, and Python's own."""
MANY: Final = " or ".join(["(" + " and ".join(["i < 0"] * 50) + ")"] * 50)
LOCALS: Final = ", ".join(f"k{number}: {number}" for number in range(3_000))
TEXTS: Final = '{u: s + "b", v: s + "c", l: for i in 1..100000 return if odd(i) then u else v, r: '

BYTES: Final[Mapping[str, str]] = {
    "strings": "for i in 1..880 return s + string(i)",
    "short strings": 'for i in 1..900000 return substring(s, 1, 900) + "b"',
    "wide strings": "for i in 1..880 return s + wide",
    "capitals": "for i in 1..880 return upper case(wide)",
    "lower case": "for i in 1..880 return lower case(s)",
    "joined strings": 'for i in 1..880 return string join([s, "b"], "c")',
    "replaced strings": 'for i in 1..880 return replace(s, "b", "c")',
    "parts of strings": "for i in 1..880 return substring(s, 2)",
    "strings before": 'for i in 1..880 return substring before(s + "b", "b")',
    "base 64": "for i in 1..880 return to base64(s)",
    "texts of numbers": "for i in 1..900000 return string(10 ** 6144)",
    "texts of lists": "for i in 1..880 return string([s, s])",
    "JSON": "for i in 1..880 return to json([s, s])",
    "values of JSON": 'from json("[" + string join(for i in 1..300000 return "{}", ",") + "]")',
    "numbers": "for i in 1..900000 return i + 1",
    "numbers themselves": "for i in 1..900000 return i",
    "numbers of a range": "for i in [1..900000] return 1",
    "lists": "for i in 1..900000 return [" + ", ".join(["i"] * 5_000) + "]",
    "contexts": "for i in 1..900000 return {" + LOCALS + "}",
    "small contexts": "for i in 1..900000 return {a: i, b: i + 1, c: [i]}",
    "functions": "for i in 1..900000 return function(x) x + i",
    "functions that see much": "{" + LOCALS + ", r: for i in 1..900000 return function(x) x + i}.r",
    "functions of functions": "{" + LOCALS + ", f: function(a) function(b) a, r: for i in 1..900000 return f(i)}.r",
    "entries": "for i in 1..900 return get entries(context(for k in 1..1000 return {key: string(k), value: k}))",
    "nested entries": 'for i in 1..900000 return context put({}, ["a", "b", "c", "d", "e", "f", "g", "h"], i)',
    "parts of lists": "for i in 1..900 return partition(for k in 1..1000 return k, 1)",
}
"""They make values without end; `s` has a million characters."""

STEPS: Final[Mapping[str, str]] = {
    "long body": f"count(for i in 1..900000 return {MANY})",
    "long condition": f"some i in 1..900000 satisfies {MANY}",
    "long condition of a filter": f"(for i in 1..90000 return {{i: 1}})[{MANY}]",
    "long body of a function": f"{{f: function(i) {MANY}, r: for i in 1..900000 return f(i)}}.r",
    "calls in the body": "count(for i in 1..900000 return [" + ", ".join(["abs(i)"] * 500) + "])",
    "calls that see much": "{" + LOCALS + ", f: function(x) x, r: count(for i in 1..900000 return f(i))}.r",
    "search": 'count(for i in 1..900000 return contains(s, "b"))',
    "search for much": 'count(for i in 1..900000 return contains(s, substring(s, 1, 500) + "b"))',
    "beginning": "count(for i in 1..900000 return starts with(s, substring(s, 1, 900000)))",
    "blanks": "count(for i in 1..900000 return is blank(blank))",
    "equality": TEXTS + "count(for i in 1..900000 return u = v)}.r",
    "inequality": TEXTS + "count(for i in 1..900000 return u != v)}.r",
    "order": TEXTS + "count(for i in 1..900000 return u < v)}.r",
    "between": TEXTS + "count(for i in 1..900000 return u between v and u)}.r",
    "in": TEXTS + "count(for i in 1..900000 return u in (v, [v..u]))}.r",
    "item": TEXTS + 'list contains(l, s + "d")}.r',
    "positions": TEXTS + 'index of(l, s + "d")}.r',
    "greatest": TEXTS + "max(l)}.r",
    "distinct": TEXTS + "distinct values(l)}.r",
    "duplicates": TEXTS + "duplicate values(l)}.r",
    "equal lists": TEXTS + "l = (for i in 1..100000 return if odd(i) then u else v)}.r",
    "order of a list": TEXTS + "sort(l, function(x, y) x < y)}.r",
    "item of a list": "{l: for i in 1..1000 return i, r: count(for i in 1..900000 return -1 in l)}.r",
    "matches": 'count(for i in 1..900 return replace(s, "a", ""))',
    "parts": 'count(split(s, "a"))',
    "patterns": 'count(for i in 1..900000 return matches("a", "(a{1,500}){1,2}" + string(i)))',
    "classes": r'count(for i in 1..900000 return matches("a", "[\\p{L}-[\\p{Lu}]][\\w-[a-z]]" + string(i)))',
    "JSON": "{t: to json(for i in 1..20000 return i), r: for i in 1..900000 return count(from json(t))}.r",
    "dates": 'count(for d in date("0001-01-01")..date("999999999-12-31") return 1)',
    "far dates": 'every d in date("100000-01-01")..date("999999999-12-31") satisfies true',
    "times": 'count(for i in 1..900000 return date and time("2020-01-01T00:00:00@Europe/Berlin"))',
    "zones": 'count(for i in 1..900000 return time("10:00:00@Europe/Berlin") - time("10:00:00@America/New_York"))',
    "weeks": 'count(for i in 1..900000 return week of year(date("999999-01-01")))',
    "ranges": 'count(for i in 1..900000 return range("[1..2]"))',
    "powers": "count(for i in 1..900000 return 1.0000001 ** 1000000000.5)",
    "whole powers": "count(for i in 1..900000 return 1.0000001 ** 999999999)",
    "exponentials": "count(for i in 1..900000 return exp(i / 7))",
    "logarithms": "count(for i in 1..900000 return log(i / 7))",
    "remainders": "count(for i in 1..900000 return modulo(10 ** 6000, 10 ** -6000 * 7))",
    "million calls": "{f: function(n) if n > 90 then 1 else f(n + 1) + f(n + 1), r: f(1)}.r",
    "keys that are not there": "count(for i in 1..900000 return get value({}, s))",
    "texts in loops": "count(for i in 1..900000 return string length(string(i)))",
}
"""Each of their turns is slow."""


def make_context() -> dict[str, object]:
    return {"s": "a" * 1_000_000, "wide": "\u0390" * 100_000, "blank": " " * 1_000_000}


@pytest.mark.parametrize("name", STEPS)
def test_slow_turns_count_for_more_than_one_step(name: str) -> None:
    begin = time.process_time()

    with pytest.raises(FeelLimitExceeded, match=r"all the steps|bytes of values"):
        feel.evaluate(STEPS[name], make_context(), max_steps=MOST_STEPS // 5)
    assert time.process_time() - begin < SECONDS / 2


@pytest.mark.parametrize("name", BYTES)
def test_values_without_end_meet_the_limit_of_bytes(name: str) -> None:
    with pytest.raises(FeelLimitExceeded, match="bytes of values"):
        feel.evaluate(BYTES[name], make_context(), max_steps=100 * MOST_STEPS)


def test_memory_stays_small_whatever_is_evaluated() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.feel.test_memory"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < ROOM


def main() -> None:
    """Evaluate all that makes values without end, and print by how much the process grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for text in BYTES.values():
        try:
            feel.evaluate(text, make_context())
        except FeelLimitExceeded:
            continue
        raise AssertionError(text)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def test_limit_of_bytes_can_be_chosen() -> None:
    text = "for i in 1..1000 return s"
    context = {"s": "a" * 100}

    assert len(feel.evaluate(text, context, max_bytes=1_000_000)) == 1_000
    with pytest.raises(FeelLimitExceeded, match="bytes of values"):
        feel.evaluate(f"{text} + s", context, max_bytes=100_000)
    with pytest.raises(FeelLimitExceeded, match="bytes of values"):
        feel.unary_tests(f"count({text} + s) = 1", 1, context, max_bytes=100_000)


# --- what is reasonable ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('count(for i in 1..500 return long + "-" + string(i))', 500),
        ("count(for i in 1..100000 return i * 2)", 100_000),
        ('count(for i in 1..20000 return {id: i, name: "n" + string(i), tags: ["a", "b"]})', 20_000),
        ("count((for i in 1..50000 return {a: i, b: i * 2})[a > 100 and b < 1000])", 399),
        ("sum(for a in 1..100, b in 1..100 return a * b)", 25_502_500),
        ('count(split(string join(for i in 1..20000 return string(i), ","), ","))', 20_000),
        ("{f: function(n) if n < 2 then n else f(n - 1) + f(n - 2), r: f(18)}.r", 2_584),
        ("count(sort(for i in 1..5000 return -i, function(a, b) a < b))", 5_000),
        ("count(from json(to json(for i in 1..20000 return {a: i})))", 20_000),
    ],
)
def test_reasonable_work_stays_within_the_limits(text: str, expected: int) -> None:
    assert feel.evaluate(text, {"long": "x" * 10_000}) == expected


# --- warnings ---


def test_warnings_are_kept_up_to_a_number() -> None:
    warnings: list[feel.FeelWarning] = []

    feel.evaluate("count(for i in 1..100000 return null + i)", warnings=warnings)

    assert len(warnings) == MOST_WARNINGS


def test_warnings_are_cut_where_they_are_long() -> None:
    warnings: list[feel.FeelWarning] = []
    feel.evaluate("1 + " + "a" * 5_000, warnings=warnings)

    assert len(warnings[0].message) == LONGEST_WARNING + 1


if __name__ == "__main__":
    main()
