"""What people write who come from other languages, and what FEEL writes instead: hints in errors and warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

_CHOICE: Final = "For a choice, write if … then … else …"
_STRING: Final = 'Put strings between double quotes, as in "text"'
_COMPARE: Final = "Write = to compare"
_DIFFER: Final = "Write != to compare"
_SIGNS: Final[Mapping[str, str]] = {
    "===": _COMPARE,
    "==": _COMPARE,
    "!==": _DIFFER,
    "<>": _DIFFER,
    "=!": _DIFFER,
    "≠": _DIFFER,
    "=>": "Write >= to compare, or function(x) … to define a function",
    "=<": "Write <= to compare",
    "≤": "Write <= to compare",
    "≥": "Write >= to compare",
    "&&": "Write and",
    "&": "Write and, or + between strings",
    "||": "Write or, or + between strings",
    "|": "Write or",
    "!": "Write not(…)",
    "~": "Write not(…), or matches(…) for regular expressions",
    "%": "For a remainder, write modulo(dividend, divisor); for a percentage, divide by 100",
    "^": "For powers, write **",
    "'": _STRING,
    "\u2018": _STRING,
    "\u2019": _STRING,
    "\u201a": _STRING,
    "\u201c": _STRING,
    "\u201d": _STRING,
    "\u201e": _STRING,
    "`": "Close the name with another `",
    "\u2212": "Write - for minus",
    "\u2013": "Write - for minus",
    "\u00d7": "Write *",
    "÷": "Write /",
    ";": "Put commas between items, and named steps into a context: {a: 1, b: a + 1}",
    "$": "Write the name alone",
    "#": "Write // before a comment",
}
_SIGN: Final = re.compile("|".join(re.escape(sign) for sign in sorted(_SIGNS, key=len, reverse=True)))
_COMPARISON: Final = re.compile(r"[=<>!]{2,}")
_COMPARISONS: Final = frozenset({"<=", ">=", "!="})
_ANY_COMPARISON: Final = "Write =, !=, <, <=, > or >= to compare"
_ASSIGNMENT: Final = "Nothing is assigned in FEEL. Name a result by a key of a context: {a: 1, b: a + 1}"
_TOKENS: Final[Mapping[str, str]] = {
    "?": _CHOICE,
    ":": f"A colon stands behind keys and names of parameters. {_CHOICE}",
    "->": "To define a function, write function(x) …",
}
_WORDS: Final[Mapping[str, str]] = {
    "is": "Write = to compare, as in a = null",
    "equals": _COMPARE,
    "not": "Write not(…) around what is negated",
    "like": "Write contains(…) or matches(…)",
    "matches": "Write matches(…)",
    "contains": "Write contains(…)",
    "mod": "For a remainder, write modulo(dividend, divisor)",
    "xor": "Write != between two booleans",
}
"""Hints by the first word of a name that stands where an operator should."""
_KEYWORDS: Final = frozenset({"and", "or", "in", "then", "else", "between", "instance", "return", "satisfies"})
_CONSTANTS: Final = frozenset({"null", "true", "false"})
_LONGEST_SHOWN: Final = 200
"""Characters of a name that is looked at, and shown in a hint."""


def find_sign(text: str, at: int) -> tuple[str, str] | None:
    """The sign of another language that stands at an offset, and what FEEL writes."""
    found = _SIGN.match(text, at)
    return None if found is None else (found.group(), _SIGNS[found.group()])


def find_comparison(text: str, at: int) -> tuple[str, str] | None:
    """The same where FEEL has a comparison of one or two signs: `==` is no `=`. There may be an assignment, too: `+=`."""
    found = _COMPARISON.match(text, at)
    if found is not None and found.group() not in _COMPARISONS:
        return found.group(), _SIGNS.get(found.group(), _ANY_COMPARISON)
    if at > 0 and text[at] == "=" and text[at - 1] in "+-*/":
        return text[at - 1 : at + 1], _ASSIGNMENT
    return None


def hint_at(token: str) -> str:
    """What FEEL writes instead of a token that stands where it cannot; empty if nobody knows."""
    word = token.split(" ", 1)[0]
    if word != word.lower() and word.lower() in _KEYWORDS:
        return f"Write {word.lower()} in small letters"
    return _TOKENS.get(token) or _WORDS.get(word, "")


def hint_in_name(name: str, *, is_entry: bool = False) -> str:
    """What FEEL writes instead of words that are together no name that anybody declared: `not a`, `a is null`.

    The name of an entry, behind a dot, may well begin with `not`.
    """
    words = name[:_LONGEST_SHOWN].split(" ")
    if len(words) == 1:
        return ""
    if words[0] == "not" and not is_entry:
        return f"Write not({' '.join(words[1:])})"
    if "??" in words:
        return "For a default, write get or else(value, default)"
    if words[-1] == "not":
        return f"Write not({' '.join(words[:-1])} in …)"
    constant = next((word for word in words[1:] if word in _CONSTANTS), None)
    if constant is None:
        return ""
    if "is" in words[1:]:
        sign = "!=" if "not" in words else "="
        return f"Write {' '.join(words[: words.index('is', 1)])} {sign} {constant}"
    return f"Put an operator before {constant}"


# --- the nearest name ---

_ALIASES: Final[dict[str, str]] = {
    "len": "string length' or 'count",
    "length": "string length' or 'count",
    "size": "count",
    "concat": "concatenate' or 'string join",
    "join": "string join",
    "substr": "substring",
    "ceil": "ceiling",
    "round": "round half up",
    "avg": "mean",
    "average": "mean",
    "mod": "modulo",
    "coalesce": "get or else",
    "ifnull": "get or else",
    "nvl": "get or else",
    "tostring": "string",
    "str": "string",
    "int": "number",
    "tonumber": "number",
    "regex": "matches",
    "match": "matches",
    "datetime": "date and time",
    "distinct": "distinct values",
    "unique": "distinct values",
    "keys": "get entries",
    "merge": "context merge",
    "isnull": "is defined",
    "exists": "is defined",
    "true": "true",
    "false": "false",
    "null": "null",
    "none": "null",
    "nil": "null",
    "undefined": "null",
}
"""What functions and constants of other languages are called in FEEL."""
_FUNCTIONS: Final = frozenset({"count", "substring"})
"""Where these are among the names, a function is looked for."""
_LONGEST: Final = 60
"""Characters of a name that is compared with others."""
_MOST_NAMES: Final = 500


def suggest(name: str, known: Iterable[str]) -> str:
    """`. Did you mean …?` with the nearest of some names, or nothing. Capitals, spaces and signs do not count."""
    for word in name.split(" "):
        if word != word.lower() and word.lower() in _KEYWORDS and " " in name:
            return f". Did you mean '{word.lower()}', in small letters?"
    candidates = {_simplify(one): one for one, _ in zip(known, range(_MOST_NAMES), strict=False) if len(one) <= _LONGEST}
    if len(name) > _LONGEST:
        return ""
    return _find_nearest(_simplify(name), tuple(candidates.items()))


@lru_cache(maxsize=32)
def _find_nearest(name: str, candidates: tuple[tuple[str, str], ...]) -> str:
    by_name = {key: value for key, value in _ALIASES.items() if value in _CONSTANTS} | dict(candidates)
    if any(value in _FUNCTIONS for _, value in candidates):
        by_name = _ALIASES | by_name
    near = [name] if name in by_name else get_close_matches(name, by_name, n=1, cutoff=0.75)
    return f". Did you mean '{by_name[near[0]]}'?" if near else ""


@lru_cache(maxsize=1_024)
def _simplify(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
