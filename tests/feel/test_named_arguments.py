"""Each form of each built-in function is called by the names of its parameters: by its name, by way of a variable, and by
boxed invocations of decision models.

The table has a row for every form and every number of arguments that it takes; a test makes sure of that.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import pytest

from holdfast import dmn, feel
from holdfast.feel import syntax
from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.parser import parse_expression
from tests.dmn import models
from tests.feel.tck import is_same

NOW: Final = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)

CALLS: Final = """
string(from: 1.5) is "1.5"
number(from: "1.5") is 1.5
number(from: "1 000", grouping separator: " ") is 1000
number(from: "1,5", decimal separator: ",") is 1.5
number(from: "1.000,5", grouping separator: ".", decimal separator: ",") is 1000.5
from json(value: "[1]") is [1]
to json(value: [1]) is "[1]"
not(negand: true) is false
is() is false
is(value1: 1) is false
is(value1: 1, value2: 1) is true
is defined(value: 1) is true
get or else(value: null, default: 1) is 1
assert(value: 1, condition: true) is 1
assert(value: 1, condition: true, cause: "c") is 1
fromAi(value: 1) is 1
fromAi(value: 1, description: "d") is 1
fromAi(value: 1, description: "d", type: "number") is 1
fromAi(value: 1, description: "d", type: "number", schema: {}) is 1
fromAi(value: 1, description: "d", type: "number", schema: {}, options: {}) is 1
fromAi(value: 1, options: {}) is 1
substring(string: "abc", start position: 2) is "bc"
substring(string: "abc", start position: 2, length: 1) is "b"
string length(string: "abc") is 3
upper case(string: "abc") is "ABC"
lower case(string: "ABC") is "abc"
substring before(string: "abc", match: "b") is "a"
substring after(string: "abc", match: "b") is "c"
contains(string: "abc", match: "b") is true
starts with(string: "abc", match: "a") is true
ends with(string: "abc", match: "c") is true
matches(input: "abc", pattern: "B") is false
matches(input: "abc", pattern: "B", flags: "i") is true
replace(input: "abc", pattern: "b", replacement: "-") is "a-c"
replace(input: "abc", pattern: "B", replacement: "-", flags: "i") is "a-c"
split(string: "a,b", delimiter: ",") is ["a", "b"]
string join(list: ["a", "b"]) is "ab"
string join(list: ["a", "b"], delimiter: "-") is "a-b"
string join(list: ["a", "b"], delimiter: "-", prefix: "<", suffix: ">") is "<a-b>"
extract(string: "a1", pattern: "[0-9]") is ["1"]
trim(string: " a ") is "a"
is blank(string: " ") is true
uuid() is "00000000-0000-4000-8000-000000000000"
to base64(value: "FEEL") is "RkVFTA=="
from base64(value: "RkVFTA==") is "FEEL"
decimal(n: 2.55, scale: 1) is 2.6
decimal(n: 2.55, scale: 1, mode: "DOWN") is 2.5
floor(n: 1.55) is 1
floor(n: 1.55, scale: 1) is 1.5
ceiling(n: 1.55) is 2
ceiling(n: 1.55, scale: 1) is 1.6
round up(n: 1.51) is 2
round up(n: 1.51, scale: 1) is 1.6
round down(n: 1.59) is 1
round down(n: 1.59, scale: 1) is 1.5
round half up(n: 1.5) is 2
round half up(n: 1.55, scale: 1) is 1.6
round half down(n: 1.5) is 1
round half down(n: 1.55, scale: 1) is 1.5
abs(n: -1) is 1
abs(n: @"-P1D") is @"P1D"
modulo(dividend: 7, divisor: 4) is 3
sqrt(number: 4) is 2
log(number: 1) is 0
exp(number: 0) is 1
odd(number: 1) is true
even(number: 1) is false
random number() is 0
list contains(list: [1, 2], element: 2) is true
count(list: [1, 2]) is 2
min(list: [3, 1]) is 1
min(c1: 3, c2: 1) is 1
max(list: [3, 1]) is 3
max(c1: 3, c2: 1) is 3
sum(list: [3, 1]) is 4
sum(n1: 3, n2: 1) is 4
product(list: [3, 2]) is 6
product(n1: 3, n2: 2) is 6
mean(list: [3, 1]) is 2
mean(n1: 3, n2: 1) is 2
median(list: [3, 1, 2]) is 2
median(n1: 3, n2: 1, n3: 2) is 2
stddev(list: [1, 3, 5]) is 2
stddev(n1: 1, n2: 3, n3: 5) is 2
mode(list: [1, 1, 2]) is [1]
mode(n1: 1, n2: 1, n3: 2) is [1]
all(list: [true, false]) is false
all(b1: true, b2: false) is false
any(list: [true, false]) is true
any(b1: true, b2: false) is true
sublist(list: [1, 2, 3], start position: 2) is [2, 3]
sublist(list: [1, 2, 3], start position: 2, length: 1) is [2]
append(list: [1], item: 2) is [1, 2]
append(list: [1], item1: 2, item2: 3) is [1, 2, 3]
append(list: [1], items: [2, 3]) is [1, 2, 3]
concatenate(list: [1]) is [1]
concatenate(list1: [1], list2: [2]) is [1, 2]
concatenate(lists: [[1], [2]]) is [1, 2]
insert before(list: [1, 3], position: 2, newItem: 2) is [1, 2, 3]
remove(list: [1, 3], position: 2) is [1]
list replace(list: [1, 3], position: 2, newItem: 2) is [1, 2]
list replace(list: [1, 3], match: function(item, new) item > new, newItem: 2) is [1, 2]
reverse(list: [1, 2]) is [2, 1]
index of(list: [1, 2], match: 2) is [2]
union(list: [1, 1]) is [1]
union(list1: [1], list2: [1, 2]) is [1, 2]
union(lists: [[1], [1, 2]]) is [1, 2]
distinct values(list: [1, 1]) is [1]
duplicate values(list: [1, 1]) is [1]
flatten(list: [[1], 2]) is [1, 2]
sort(list: [2, 1], precedes: function(x, y) x < y) is [1, 2]
partition(list: [1, 2], size: 1) is [[1], [2]]
is empty(list: []) is true
get value(m: {a: 1}, key: "a") is 1
get value(context: {a: 1}, key: "a") is 1
get value(context: {a: {b: 1}}, keys: ["a", "b"]) is 1
get entries(m: {a: 1}) is [{key: "a", value: 1}]
get entries(context: {a: 1}) is [{key: "a", value: 1}]
context(entries: [{key: "a", value: 1}]) is {a: 1}
context put(context: {}, key: "a", value: 1) is {a: 1}
context put(context: {}, keys: ["a", "b"], value: 1) is {a: {b: 1}}
put(context: {}, key: "a", value: 1) is {a: 1}
put(context: {}, keys: ["a", "b"], value: 1) is {a: {b: 1}}
context merge(contexts: [{a: 1}, {b: 2}]) is {a: 1, b: 2}
put all(contexts: [{a: 1}, {b: 2}]) is {a: 1, b: 2}
before(point1: 1, point2: 2) is true
before(point: 1, range: [2..3]) is true
before(range: [2..3], point: 4) is true
before(range1: [1..2], range2: [3..4]) is true
after(point1: 2, point2: 1) is true
after(point: 4, range: [2..3]) is true
after(range: [2..3], point: 1) is true
after(range1: [3..4], range2: [1..2]) is true
meets(range1: [1..2], range2: [2..3]) is true
met by(range1: [2..3], range2: [1..2]) is true
overlaps(range1: [1..3], range2: [2..4]) is true
overlaps before(range1: [1..3], range2: [2..4]) is true
overlaps after(range1: [2..4], range2: [1..3]) is true
finishes(point: 3, range: [1..3]) is true
finishes(range1: [2..3], range2: [1..3]) is true
finished by(range: [1..3], point: 3) is true
finished by(range1: [1..3], range2: [2..3]) is true
includes(range: [1..3], point: 2) is true
includes(range1: [1..3], range2: [2..3]) is true
during(point: 2, range: [1..3]) is true
during(range1: [2..3], range2: [1..3]) is true
starts(point: 1, range: [1..3]) is true
starts(range1: [1..2], range2: [1..3]) is true
started by(range: [1..3], point: 1) is true
started by(range1: [1..3], range2: [1..2]) is true
coincides(point1: 1, point2: 1) is true
coincides(range1: [1..3], range2: [1..3]) is true
range(from: "[1..3]") is [1..3]
date(from: "2024-02-29") is @"2024-02-29"
date(from: @"2024-02-29T10:00:00") is @"2024-02-29"
date(year: 2024, month: 2, day: 29) is @"2024-02-29"
time(from: "10:00:00") is @"10:00:00"
time(from: @"2024-02-29T10:00:00") is @"10:00:00"
time(hour: 10, minute: 30, second: 5) is @"10:30:05"
time(hour: 10, minute: 30, second: 5, offset: @"PT1H") is @"10:30:05+01:00"
date and time(from: "2024-02-29T10:00:00") is @"2024-02-29T10:00:00"
date and time(from: @"2024-02-29T10:00:00") is @"2024-02-29T10:00:00"
date and time(date: @"2024-02-29", time: @"10:00:00") is @"2024-02-29T10:00:00"
date and time(date: @"2024-02-29", time: @"10:00:00", timezone: "Z") is @"2024-02-29T10:00:00Z"
date and time(date: @"2024-02-29T10:00:00Z", timezone: "Asia/Tokyo") is @"2024-02-29T19:00:00@Asia/Tokyo"
date and time(year: 2024, month: 2, day: 29, hour: 1, minute: 2, second: 3) is @"2024-02-29T01:02:03"
date and time(year: 2024, month: 2, day: 29, hour: 1, minute: 2, second: 3, offset: @"PT1H") is @"2024-02-29T01:02:03+01:00"
date and time(year: 2024, month: 2, day: 29, hour: 1, minute: 2, second: 3, hour offset: 1) is @"2024-02-29T01:02:03+01:00"
date and time(year: 2024, month: 2, day: 29, hour: 1, minute: 2, second: 3, timezone: "Z") is @"2024-02-29T01:02:03Z"
duration(from: "P1D") is @"P1D"
duration(from: @"P1Y") is @"P1Y"
years and months duration(from: @"2023-01-01", to: @"2024-02-01") is @"P13M"
now() is @"2024-02-29T12:30:00Z"
today() is @"2024-02-29"
day of year(date: @"2024-02-01") is 32
day of week(date: @"2024-02-29") is "Thursday"
month of year(date: @"2024-02-29") is "February"
week of year(date: @"2021-01-03") is 53
last day of month(date: @"2024-02-01") is @"2024-02-29"
cycle(interval: @"PT10M") is "R/PT10M"
cycle(repetitions: 3, interval: @"PT10M") is "R3/PT10M"
"""


def split_line(line: str) -> tuple[str, str, str]:
    """The function, its arguments as they are written, and the value."""
    call, _, value = line.rpartition(") is ")
    name, _, arguments = call.partition("(")
    return name, arguments, value


ROWS: Final = [split_line(line) for line in CALLS.strip().splitlines()]


def list_arguments(name: str, arguments: str) -> list[tuple[str, str]]:
    """The names and texts of the arguments of a call."""
    names = [re.escape(one) for one in find_names(name, arguments)]
    parts = re.split(rf"(?:^|, )({'|'.join(names)}): ", arguments) if names else [""]
    return list(zip(parts[1::2], parts[2::2], strict=True))


def find_names(name: str, arguments: str) -> list[str]:
    tree = parse_expression(f"{name}({arguments})")
    assert isinstance(tree, syntax.Invocation)
    return [parameter for parameter, _ in tree.named]


def evaluate(text: str) -> Any:
    return feel.evaluate(text, clock=lambda: NOW, random=lambda _bits: 0)


@pytest.mark.parametrize(("name", "arguments", "value"), ROWS)
def test_function_is_called_by_the_names_of_its_parameters(name: str, arguments: str, value: str) -> None:
    expected = evaluate(value)

    assert is_same(evaluate(f"{name}({arguments})"), expected)
    assert is_same(evaluate(f"{{f: {name}, r: f({arguments})}}.r"), expected)
    assert is_same(evaluate(f"(function(f) f({arguments}))({name})"), expected)


@pytest.mark.parametrize(("name", "arguments", "value"), ROWS)
def test_order_of_named_arguments_does_not_matter(name: str, arguments: str, value: str) -> None:
    listed = list_arguments(name, arguments)
    if {key for key, _ in listed} == {"point", "range"}:
        return  # before(point, range) and before(range, point) are two functions, which only the order tells apart

    turned = ", ".join(f"{key}: {text}" for key, text in reversed(listed))

    assert is_same(evaluate(f"{name}({turned})"), evaluate(value))
    assert is_same(evaluate(f"{{f: {name}, r: f({turned})}}.r"), evaluate(value))


@pytest.mark.parametrize(("name", "arguments", "value"), ROWS)
def test_boxed_invocation_binds_the_parameters(name: str, arguments: str, value: str) -> None:
    bindings = "".join(
        f"<binding><parameter name={quoteattr(key)}/>{models.text(text)}</binding>"
        for key, text in list_arguments(name, arguments)
    )
    box = f"<invocation>{models.text(name)}{bindings}</invocation>"
    model = dmn.load(models.make_xml(models.decision("D", box)))

    assert is_same(model.evaluate("D", {}, clock=lambda: NOW, random=lambda _bits: 0).value, evaluate(value))


def test_every_form_is_called_with_every_number_of_its_arguments() -> None:
    called = {(name, frozenset(find_names(name, arguments))) for name, arguments, _ in ROWS}
    forms = {
        (name, frozenset(parameter.name for parameter in form.parameters[:count]))
        for name, forms in BUILT_INS.items()
        for form in forms
        for count in range(form.required, len(form.parameters) + 1)
    }

    assert forms - called == set()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ('substring(text: "abc", start position: 2)', "its parameters are (string, start position, length?), not (text"),
        ("min(c1: 1, c3: 2)", "its parameters are (c1, c2, …), not (c1, c3)"),
        ("min(a: 1)", "its parameters are (c1, c2, …), not (a)"),
        ("time(hour: 1, minute: 2)", "or (hour, minute, second, offset?), not (hour, minute)"),
    ],
)
def test_names_that_no_form_has_are_named_in_a_warning(call: str, part: str) -> None:
    name, _, arguments = call.partition("(")
    for text in (call, f"{{f: {name}, r: f({arguments}}}.r"):
        warnings: list[feel.FeelWarning] = []

        assert feel.evaluate(text, warnings=warnings) is None
        assert part in str(warnings[0])


def test_warning_names_the_first_of_many_arguments() -> None:
    for text in ("before", "(function(a) a)"):
        warnings: list[feel.FeelWarning] = []

        assert feel.evaluate(f"{text}({', '.join(f'x{i}: 1' for i in range(5_000))})", warnings=warnings) is None
        assert "x9, …" in str(warnings[0])
        assert len(str(warnings[0])) < 1_000


def test_argument_that_is_named_twice_is_refused() -> None:
    with pytest.raises(feel.FeelSyntaxError, match="another parameter"):
        feel.compile("floor(n: 1, n: 2)")
