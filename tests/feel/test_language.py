"""The language: what each kind of expression gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from holdfast import feel


def numbers(*values: int | str) -> list[Decimal]:
    return [Decimal(value) for value in values]


CASES: dict[str, object] = {
    # arithmetic, in the order of DMN's grammar
    "1 + 2 * 3": Decimal(7),
    "(1 + 2) * 3": Decimal(9),
    "2 ** 3 ** 2": Decimal(64),
    "-2 ** 2": Decimal(4),
    "7 - 2 - 1": Decimal(4),
    "0.1 + 0.2": Decimal("0.3"),
    "1 / 3": Decimal("0.3333333333333333333333333333333333"),
    "1 / 0": None,
    "10 ** 7000": None,
    '"a" + "b"': "ab",
    '"a" + 1': None,
    "1.5e3": Decimal(1500),
    ".5": Decimal("0.5"),
    # comparison and three-valued logic
    "1 < 2": True,
    '1 = "1"': None,
    "null = null": True,
    "1 != null": True,
    "[1, 2] = [1, 2]": True,
    "2 between 1 and 3": True,
    "2 between 1 and 3 and false": False,
    "true and null": None,
    "false and null": False,
    "true or null": True,
    "false or null": None,
    "not(null)": None,
    # in
    "5 in [1..5]": True,
    "5 in [1..5)": False,
    "5 in ]5..7[": False,
    "5 in (> 3, < 1)": True,
    "5 in > 3": True,
    '"b" in ["a", "b"]': True,
    "5 in (1, 2, 5)": True,
    "1 in [2..4] or true": True,
    "1 in (? > 0)": True,
    "1 in true": None,
    "1 in (2 > 1)": None,
    "true in (2 > 1)": True,
    "null in (2 > 1)": False,
    # comparisons without a left side are ranges
    "(= 10).start": Decimal(10),
    "(= 10).end": Decimal(10),
    "(= 10).start included": True,
    "(= 10).end included": True,
    "(!= 10).start": Decimal(10),
    "(!= 10).end": Decimal(10),
    "(!= 10).start included": False,
    "(!= 10).end included": False,
    "(< 10).start": None,
    "(< 10).end": Decimal(10),
    "(< 10).start included": False,
    "(< 10).end included": False,
    "(<= 10).end included": True,
    "(> 10).start": Decimal(10),
    "(> 10).end": None,
    "(> 10).start included": False,
    "(>= 10).start included": True,
    "(>= 10).end included": False,
    "(= 10) = [10..10]": False,
    "string([(= 10), (!= 10), (< 10), (>= 10)])": "[= 10, != 10, < 10, >= 10]",
    # brackets that open and close
    "[1, 2, 3][ ]1..4] ]": numbers(2, 3),
    "[1, 2, 3][]1..3[]": numbers(2),
    "[-1, 0, 1][ ]-1..4] ]": numbers(0, 1),
    "[1, 2, 3][(1..4)]": numbers(2, 3),
    "2 in ]1..3[": True,
    "]1..3[ = (1..3)": True,
    "count([ ]1..3[ ])": Decimal(1),
    "[ ]1..3[ ][1] = (1..3)": True,
    "2 in ]1..[3, 4][1][": True,
    # all white space of DMN 10.3.1.2, rules 61 and 62
    "{a: 1, r: a\u1680+\u180e1\ufeff+\u200b1\u00a0+\u20281}.r": Decimal(4),
    "{a\ufeffb: 1, r: a\u180eb}.r": Decimal(1),
    "\ufeff= 1 + 1\ufeff": Decimal(2),
    # conditions and loops
    'if 1 > 2 then "a" else "b"': "b",
    'if null then "a" else "b"': "b",
    "for i in [1, 2] return i * 2": numbers(2, 4),
    "for i in 1..3 return i": numbers(1, 2, 3),
    "for i in 3..1 return i": numbers(3, 2, 1),
    "for x in [1, 2], y in [10, 20] return x + y": numbers(11, 21, 12, 22),
    "for i in 1..4 return if i = 1 then 1 else i * partial[-1]": numbers(1, 2, 6, 24),
    "for i in [1..3] return i": numbers(1, 2, 3),
    "some x in [1, 2] satisfies x > 1": True,
    "every x in [1, 2] satisfies x > 1": False,
    "every x in [] satisfies false": True,
    "some x in [1, null] satisfies x > 5": None,
    # strings
    r'"a\tb\n\"\\\'\f\b"': "a\tb\n\"\\'\f\b",
    r'"\d\s\."': r"\d\s\.",
    r'"\u00fc\U01F40E\uD83D\uDC0E"': "ü🐎🐎",
    # lists, filters, paths
    "[]1..3[][1].end included": False,
    '[]"a".."c"]][1].start included': False,
    "[][1]": None,
    "[] = []": True,
    "[1, 2, 3][2]": Decimal(2),
    "[1, 2, 3][-1]": Decimal(3),
    "[1, 2, 3][0]": None,
    "[1, 2, 3][item > 1]": numbers(2, 3),
    "[{a: 1, b: 2}, {a: 3, b: 4}][a > 1].b": numbers(4),
    "[{a: 1}, {a: 2}].a": numbers(1, 2),
    "[{item: 1}, {item: 2}][item = 2]": [{"item": Decimal(2)}],
    "[[1, 2], [3]][count(item) > 1]": [numbers(1, 2)],
    "[1, 2, 3][> 1]": numbers(2, 3),
    "[1, 2, 3, 4][[2..3]]": numbers(2, 3),
    "[1, 2, 3, 4][> 1 and < 4 or item = 4]": numbers(2, 3, 4),
    "[{a: 1}, {a: 2}][a > 1 and a < 3]": [{"a": Decimal(2)}],
    "null[item > 1]": None,
    "null[1]": None,
    "100[1]": Decimal(100),
    "{a: {b: 1}}.a.b": Decimal(1),
    "{a: 1}.b": None,
    "null.a": None,
    '{"a b": 1}.a b': Decimal(1),
    "{a: 1, b: a + 1}": {"a": Decimal(1), "b": Decimal(2)},
    # functions
    "(function(a, b) a + b)(1, 2)": Decimal(3),
    "(function(a, b) a - b)(b: 1, a: 2)": Decimal(1),
    "{f: function(n) if n < 2 then 1 else n * f(n - 1), r: f(5)}.r": Decimal(120),
    "{fs: for i in 1..3 return function() i, r: for f in fs return f()}.r": numbers(1, 2, 3),
    "(function(a: number) a)([5])": Decimal(5),
    '(function(a: number) a)("x")': None,
    "(function(a) a)(1, 2)": None,
    "(function(a, b) [a, b])(b: 1)": [None, Decimal(1)],
    "(function(a, b) a)(a: 1, c: 2)": None,
    "{f: function(net + tax, person's age) net+tax * person's age, r: f(2, 3)}.r": Decimal(6),
    "for person's age in [1, 2] return person's age + 1": numbers(2, 3),
    "some line-no in [1, 2] satisfies line-no > 1": True,
    '{time: @"09:30:00", r: time("10:00:00") > time}.r': True,
    "{count: [1, 2], r: count(count)}.r": Decimal(2),
    "{count: function(a) 7, r: count([])}.r": Decimal(7),
    "{is minor: < 18, r: [is minor(16), is minor(18)]}.r": [True, False],
    'substring(string: "abc", start position: 2)': "bc",
    'substring(text: "abc", start position: 2)': None,
    "sort([3, 1, 2], function(a, b) a < b)": numbers(1, 2, 3),
    "(for f in [floor, ceiling] return f(1.5))": numbers(1, 2),
    '(function(a) external {java: {class: "x"}})(1)': None,
    # types
    "1 instance of number": True,
    "-1 instance of number": True,
    "[1] instance of list<number>": True,
    '["a"] instance of list<number>': False,
    "{a: 1} instance of context<a: number>": True,
    "[1..2] instance of range<number>": True,
    'date("2020-01-01") instance of date and time': False,
    "1 instance of nothing that is known": None,
    '@"2020-01-01T10:00:00" instance of date time': True,
    '@"P1D" instance of day-time-duration': True,
    '@"P1D" instance of year-month-duration': False,
    "(function(a: number) a) instance of function<number> -> Any": True,
    "(function(a: number) a) instance of function<Any> -> Any": False,
    "(function(a: Any, b) a) instance of function<number, string> -> Any": True,
    "(function(a: context<x: number>) a) instance of function<context<x: number, y: string>> -> Any": True,
    "(function(a: context<x: number, y: string>) a) instance of function<context<x: number>> -> Any": False,
    "(function(a: list<number>) a) instance of function<list> -> Any": False,
    "(function(a: function<number> -> Any) a) instance of function<function<Any> -> number> -> Any": True,
    # comments
    "1 /* one */ + // two\n 1": Decimal(2),
    "{a /* one */ : 1, // two\n b: a}.b": Decimal(1),
    "(function(a /* one */, b // two\n) a)(1, 2)": Decimal(1),
    "for a /* one */ in [1] return a": numbers(1),
    # Camunda
    "=1 + 1": Decimal(2),
    "is defined(x)": False,
    "is defined({a: null}.a)": False,
    "is defined({a: null}.b)": False,
    "is defined({a: 1}.a)": True,
    "is defined(null)": False,
    "is defined(floor)": False,
    "{floor: 1, r: is defined(floor)}.r": True,
    "[{a: 1}, {b: 2}][is defined(a)]": [{"a": Decimal(1)}],
    "and([true, false])": False,
    "and(true, null)": None,
    "or(false, null, true)": True,
    "true and or(false, true)": True,
    "get or else(null, 1)": Decimal(1),
    "`a b`": None,
}


@pytest.mark.parametrize("text", CASES)
def test_expression_gives(text: str) -> None:
    found = feel.evaluate(text)

    assert found == CASES[text]
    assert type(found) is type(CASES[text])


UNARY: dict[tuple[str, Any], bool | None] = {
    ("-", 5): True,
    ("", 5): True,
    ("< 5", 4): True,
    ("<= 5", 6): False,
    ("5", 5): True,
    ("= 5", 5): True,
    ("!= 5", 5): False,
    ('"a", "b"', "b"): True,
    ("[1..5]", 5): True,
    ("(1..5)", 5): False,
    ("]1..5[", 3): True,
    ("not(1, 2)", 3): True,
    ("not(1, 2)", 2): False,
    ("not([1..3])", 2): False,
    ("? > 3 and ? < 7", 5): True,
    ('contains(?, "b")', "abc"): True,
    ("limit", 10): True,
    ("> limit * 2", 10): False,
    ("true", True): True,
    ("false", True): False,
    ("[1, 2]", 2): True,
    ("null", None): True,
    ("< 5", "x"): None,
    ("true", None): False,
    ("limit > 3", None): True,
    ("limit > 30", None): False,
    ("not(limit > 3)", None): False,
    ("limit > 3", True): True,
    ("limit > 3", False): False,
    ("> 3 and < 10", 5): True,
    ("> 3 and < 10", 10): False,
    ("< 3 or > limit or [5..6]", 6): True,
    ("> 3 and (? < 5 or limit = 10)", 6): True,
    ("> 3 and < 10", None): None,
    ("not(> 3 and < 10)", 5): False,
    ('date("2020-01-01")', "2020-01-01"): None,
}


@pytest.mark.parametrize(("text", "value"), UNARY)
def test_unary_tests_answer(text: str, value: Any) -> None:
    assert feel.unary_tests(text, value, {"limit": 10}) is UNARY[text, value]


# --- names ---


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("Full Name", {"Full Name": "Ann"}, "Ann"),
        ("a-b", {"a": 3, "b": 1}, Decimal(2)),
        ("a-b", {"a": 3, "b": 1, "a-b": 7}, Decimal(7)),
        ("a - b", {"a": 3, "b": 1, "a-b": 7}, Decimal(2)),
        ("a+b", {"a": 3, "b": 1, "a + b": 7}, Decimal(7)),
        ("a +b", {"a + b": 7}, Decimal(7)),
        ("a  b c*d", {"a  b c*d": 7}, Decimal(7)),
        ("order.a b", {"order": {"a  b": 7}}, Decimal(7)),
        ("`a  b`", {"a b": 7}, Decimal(7)),
        ("`a  b` + `a b`", {"a  b": 7}, Decimal(14)),
        ("Mike's age + walt's age - average age", {"Mike's age + walt's age": 9, "average age": 5}, Decimal(4)),
        ("order.net value + 1", {"order": {"net value": 1}}, Decimal(2)),
        ("order.x/y", {"order": {"x/y": 1}}, Decimal(1)),
        ("pay and benefits", {"pay and benefits": 5, "pay": True, "benefits": False}, Decimal(5)),
        ("pay and benefits", {"pay": True, "benefits": False}, False),
        ("in stock", {"in stock": True}, True),
        ("x in stock", {"in stock": 5, "stock": [1], "x": 1}, True),
        ("[] in stock", {"in stock": 5, "stock": [[]]}, True),
        ("if x and more then else text else 0", {"x": True, "and more": 1, "more": True, "else text": "a"}, "a"),
        ("`a-b` + 1", {"a-b": 1}, Decimal(2)),
        ("for my item in items return my item + 1", {"items": [1]}, numbers(2)),
        ("{net price: 2, tax + fee: 1, sum of it: net price * tax + fee}.sum of it", {}, Decimal(2)),
        ("Größe in cm", {"Größe in cm": 180}, Decimal(180)),
        ("🐎", {"🐎": "horse"}, "horse"),
        ("date and time", {"date": True, "time": True}, None),
    ],
)
def test_names_are_resolved_against_the_context(text: str, context: dict[str, Any], expected: object) -> None:
    found = feel.evaluate(text, context)

    assert found == expected or (text == "date and time" and isinstance(found, feel.Function))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("order.total > limit", {"order", "limit"}),
        ("for x in xs return x + y", {"xs", "y"}),
        ("count(items[price > 10])", {"items", "price"}),
        ("{a: 1, b: a + c}", {"c"}),
        ("function(a) a + b", {"b"}),
        ("sum(1, 2)", set()),
        ("is defined(x)", {"x"}),
        ("is defined(floor)", {"floor"}),
        ("Full Name", {"Full Name"}),
    ],
)
def test_names_that_an_expression_uses_can_be_asked_for(text: str, names: set[str]) -> None:
    assert feel.compile(text).names == names


def test_names_of_unary_tests_do_not_include_what_is_tested() -> None:
    assert feel.compile_unary_tests("> limit, ? < other").names == {"limit", "other"}


def test_names_may_be_told_when_compiling() -> None:
    expression = feel.compile("net-price * 2", names=["net-price"])

    assert expression.names == {"net-price"}
    assert expression.evaluate({"net-price": 2}) == 4


# --- values on their way in ---


def test_numbers_of_python_are_exact_decimals() -> None:
    assert feel.evaluate("a + b", {"a": 0.1, "b": 2}) == Decimal("2.1")


def test_booleans_are_no_numbers() -> None:
    assert feel.evaluate("a + 1", {"a": True}) is None
    assert feel.evaluate("a = 1", {"a": True}) is None


def test_a_context_is_not_changed_by_what_is_done_with_it() -> None:
    context = {"a": [1, 2], "b": {"c": 1}}

    feel.evaluate('[append(a, 3), context put(b, "c", 2)]', context)

    assert context == {"a": [1, 2], "b": {"c": 1}}


def test_functions_of_the_context_can_be_called() -> None:
    double = feel.Function("double", ("n",), lambda _run, arguments: arguments[0] * 2)

    assert feel.evaluate("double(4)", {"double": double}) == 8
    assert feel.evaluate("[1, 2][double(item) > 2]", {"double": double}) == [2]


# --- warnings ---


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("missing", "no variable 'missing'"),
        ("1 + null", "null"),
        ('1 < "a"', "no order between a number and a string"),
        ("{a: 1}.b", "no entry 'b'"),
        ("[1][5]", "no item at 5"),
        ('substring("a")', "arguments"),
        ("sqrt(-1)", "sqrt()"),
        ("1.x", "a number has no property 'x'"),
        ('@"2020-01-01".x', "a date has no property 'x'"),
        ("nothing(1)", "no function 'nothing'"),
        ("(null)(1)", "null cannot be called"),
        ('@"soon"', "'soon' is no date"),
    ],
)
def test_what_becomes_null_says_why(text: str, part: str) -> None:
    warnings: list[feel.FeelWarning] = []

    assert feel.evaluate(text, warnings=warnings) is None
    assert any(part in str(one) for one in warnings), warnings


def test_asking_whether_something_is_defined_is_no_reason_to_warn() -> None:
    warnings: list[feel.FeelWarning] = []

    assert feel.evaluate("[is defined(x), is defined(x.y[1])]", warnings=warnings) == [False, False]
    assert warnings == []
    assert feel.evaluate("[is defined(x), x]", warnings=warnings) == [False, None]
    assert [str(one) for one in warnings] == ["there is no variable 'x'"]
