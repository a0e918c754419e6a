"""Random FEEL, made from templates by kind: most of it has a value, and some of it is wrong on purpose.

`«number»` in a template is the place of another text of kind number. Everything comes from one `Random`, so that a seed, or
hypothesis, decides all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

PLACE: Final = re.compile("«([^»]+)»")

CONTEXT: Final[Mapping[str, Any]] = {
    "n": 7,
    "half": 2.5,
    "s": "hello",
    "flag": True,
    "nothing": None,
    "numbers": [3, 1, 2, 3],
    "words": ["pear", "fig", "apple"],
    "person": {"name": "Ann", "age": 41, "tags": ["vip", "new"]},
    "people": [{"name": "Ann", "age": 41}, {"name": "Bob", "age": 12}, {"name": "Cid", "age": 67}],
    "Full Name": "Ann Lee",
}
"""What the texts may name, as JSON."""

LEAVES: Final[Mapping[str, Sequence[str]]] = {
    "number": ("0", "1", "2", "3", "10", "-1", "-4", "0.5", "2.25", "100", "n", "half", "person.age"),
    "position": ("1", "2", "3", "-1", "-2", "5"),
    "low": ("-4", "0", "1", "-0.5"),
    "high": ("2", "3", "10", "n", "half", "100"),
    "string": ('""', '"a"', '"foobar"', '"Ann"', '"ü€"', '"1"', "s", "person.name", "Full Name"),
    "boolean": ("true", "false", "flag", "(1 < 2)", "null"),
    "numbers": ("[]", "[1, 2, 3]", "[3, 1, 2]", "numbers", "people.age", "[2.5]", "[1, 1, 2, 2]"),
    "strings": ("[]", '["a", "b"]', "words", "people.name", '["b", "a", "b"]'),
    "context": ("{}", "{a: 1}", '{a: 1, b: "x"}', "person", "people[1]", '{"a b": 1}'),
    "contexts": ("people", "[{a: 1}, {a: 2}]", "[]"),
    "date": ('date("2024-02-29")', '@"2023-12-31"', "date(2024, 1, 31)", 'date("1999-07-04")'),
    "time": ('time("10:30:00")', '@"23:59:59"', "time(0, 0, 0)"),
    "date-time": ('date and time("2024-02-29T10:30:00")', '@"2023-12-31T23:59:59"'),
    "instant": ('date and time("2024-02-29T10:30:00Z")', '@"2023-12-31T23:59:59+02:00"'),
    "days": ('duration("P1D")', 'duration("PT36H")', '@"-PT30M"', '@"P2DT3H4M5S"'),
    "months": ('duration("P1M")', 'duration("P1Y2M")', '@"-P3M"', '@"P0M"'),
    "range": ("[1..3]", "(1..3)", "[1..3)", "[-1..10]"),
}

BRANCHES: Final[Mapping[str, Sequence[str]]] = {
    "number": (
        "(«number» + «number»)",
        "(«number» - «number»)",
        "(«number» * «number»)",
        "(«number» / 4)",
        "(«position» ** 2)",
        "-(«number»)",
        "(if «boolean» then «number» else «number»)",
        "«numbers»[«position»]",
        "abs(«number»)",
        "floor(«number»)",
        "ceiling(«number»)",
        "modulo(«number», «position»)",
        "decimal(«number», 1)",
        "round up(«number», 0)",
        "round down(«number», 0)",
        "round half up(«number», 0)",
        "round half down(«number», 0)",
        "sqrt(«position» * «position»)",
        "count(«numbers»)",
        "sum(«numbers»)",
        "min(«numbers»)",
        "max(«numbers»)",
        "product(«numbers»)",
        "median(«numbers»)",
        "string length(«string»)",
        'number("12.5")',
        "«date».year",
        "«date».month",
        "«date».weekday",
        "«time».hour",
        "«date-time».minute",
        "«months».years",
        "«days».hours",
        "{r: «number», q: r + 1}.q",
        "(function(x, y) x + y)(«number», «number»)",
    ),
    "string": (
        "(«string» + «string»)",
        "(if «boolean» then «string» else «string»)",
        "«strings»[«position»]",
        "substring(«string», «position»)",
        "substring(«string», «position», 2)",
        "upper case(«string»)",
        "lower case(«string»)",
        "substring before(«string», «string»)",
        "substring after(«string», «string»)",
        'replace(«string», "[aeiou]", "-")',
        "string(«number»)",
        "string(«boolean»)",
        "string(«date»)",
        "string(«months»)",
        'string join(«strings», "-")',
        "trim(«string»)",
    ),
    "boolean": (
        "(«boolean» and «boolean»)",
        "(«boolean» or «boolean»)",
        "not(«boolean»)",
        "(«number» < «number»)",
        "(«number» >= «number»)",
        "(«number» = «number»)",
        "(«number» != «number»)",
        "(«string» = «string»)",
        "(«string» < «string»)",
        "(«date» < «date»)",
        "(«date» = «date»)",
        "(«time» <= «time»)",
        "(«date-time» > «date-time»)",
        "(«days» < «days»)",
        "(«months» = «months»)",
        "(«number» between «low» and «high»)",
        "(«number» in «range»)",
        "(«number» in (1, 2, >= 10))",
        '(«string» in ["a".."f"])',
        "(«any» = null)",
        "(some x in «numbers» satisfies x > «number»)",
        "(every x in «numbers» satisfies x > «number»)",
        "(«any» instance of number)",
        "(«any» instance of string)",
        "contains(«string», «string»)",
        "starts with(«string», «string»)",
        "ends with(«string», «string»)",
        'matches(«string», "^[a-z]+$")',
        "list contains(«numbers», «number»)",
        "all(«boolean», «boolean»)",
        "any(«boolean», «boolean»)",
        "odd(«position»)",
        "even(«position»)",
        "before(«number», «range»)",
        "includes(«range», «number»)",
        "is(«date», «date»)",
    ),
    "numbers": (
        "[«number», «number»]",
        "«numbers»[item > «number»]",
        "(for x in «numbers» return x * 2)",
        "(for x in 1..«position» return x + «number»)",
        "(for x in «numbers», y in [1, 2] return x + y)",
        "append(«numbers», «number»)",
        "concatenate(«numbers», «numbers»)",
        "insert before(«numbers», 1, «number»)",
        "remove(«numbers», 1)",
        "reverse(«numbers»)",
        "union(«numbers», «numbers»)",
        "distinct values(«numbers»)",
        "flatten([«numbers», «number»])",
        "sublist(«numbers», 1, 1)",
        "index of(«numbers», «number»)",
        "sort(«numbers», function(x, y) x < y)",
        "mode(«numbers»)",
        "people[age > «number»].age",
    ),
    "strings": (
        "[«string», «string»]",
        "«strings»[item != «string»]",
        "(for x in «strings» return upper case(x))",
        'split(«string», "o")',
        "append(«strings», «string»)",
        "sort(«strings», function(x, y) x < y)",
        "people[age > «number»].name",
    ),
    "context": (
        "{x: «number», y: «string»}",
        "«contexts»[«position»]",
        'context put(«context», "p", «number»)',
        "context merge([«context», «context»])",
        'context([{key: "k", value: «number»}])',
    ),
    "contexts": ("«contexts»[item.age > «number»]", "[«context», «context»]", "get entries(«context»)"),
    "date": ("(«date» + «months»)", "(«date» - «months»)", "date(«date-time»)", "date(2024, 2, «position»)"),
    "time": ("(«time» + «days»)", "time(«date-time»)"),
    "date-time": ("date and time(«date», «time»)", "(«date-time» + «days»)", "(«date-time» + «months»)"),
    "days": ("(«days» + «days»)", "(«date-time» - «date-time»)", "(«date» - «date»)", "(«days» * 2)", "abs(«days»)"),
    "months": ("(«months» + «months»)", "years and months duration(«date», «date»)", "(-«months»)"),
    "range": ("[«low»..«high»]", "(«low»..«high»)", "[«low»..«high»)"),
    "any": tuple(f"«{kind}»" for kind in LEAVES if kind not in ("low", "high", "position")),
}

WILD: Final[Sequence[str]] = (
    "(«any» + «any»)",
    "(«any» - «any»)",
    "(«any» * «any»)",
    "(«any» / «any»)",
    "«any» ** «any»",
    "-«any»",
    "«any» = «any»",
    "«any» <= «any»",
    "«any» and «any»",
    "«any» or «any»",
    "(«any»)[«any»]",
    "(«any»).a",
    "«any» in «any»",
    "«any» between «any» and «any»",
    "if «any» then «any» else «any»",
    "for x in «any» return «any»",
    "for x in «any»..«any» return x",
    "some x in «any» satisfies «any»",
    "[«any»..«any»]",
    "«any» instance of list<number>",
    "«any» instance of context<a: number>",
    "«any» instance of function<number> -> string",
    "{a: «any», b: a}",
    "(function(x: number) x)(«any»)",
    "function() external {java: {class: «string», method signature: «string»}}",
    "[«any», «any»]",
    "«any» // a comment\n",
    "/* a comment */ «any»",
    "@«string»",
)
"""What takes any kind, and so mostly has no value."""

TESTS: Final[Sequence[str]] = (
    "-",
    "«any»",
    "«number»",
    "«string»",
    "< «number»",
    "<= «number»",
    "> «date»",
    ">= «any»",
    "«range»",
    "not(«number»)",
    "not(«range», «string»)",
    "«number», «range», «string»",
    "? > «number»",
    "«boolean»",
    "contains(?, «string»)",
)


FOREIGN: Final = "()[]{}.,:;\"'@#?<>=!+-*/^|&~ \n\t\0\u00e9\U0001d538"


def make_text(random: Random, kind: str = "any", depth: int = 3, *, wildness: float = 0.0, calls: Sequence[str] = ()) -> str:
    """A text of a kind; `wildness` is how often a place is taken by what does not fit, `calls` more templates for that."""
    if wildness and random.random() < wildness:
        kind = "any"
        template = random.choice((*WILD, *calls)) if depth > 0 else random.choice(LEAVES[random.choice(sorted(LEAVES))])
    elif kind == "any" or (depth > 0 and kind in BRANCHES and random.random() < 0.75):
        template = random.choice(BRANCHES[kind])
    else:
        template = random.choice(LEAVES[kind])
    lower = depth if kind == "any" and template in BRANCHES["any"] else depth - 1
    return fill(random, template, lower, wildness=wildness, calls=calls)


def fill(random: Random, template: str, depth: int, *, wildness: float = 0.0, calls: Sequence[str] = ()) -> str:
    """A template with a text in every place."""
    return PLACE.sub(lambda place: make_text(random, place[1], depth, wildness=wildness, calls=calls), template)


def mutate(random: Random, text: str) -> str:
    """The text with some characters lost, doubled, turned round or foreign."""
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(text))
        to = min(len(text), at + random.randint(1, 3))
        old = text[at:to]
        text = text[:at] + random.choice(("", old * 2, old[::-1], random.choice(FOREIGN))) + text[to:]
    return text
