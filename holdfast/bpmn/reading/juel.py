"""JUEL, the expression language of Camunda 7, translated to FEEL: `${order.total > 100 && !empty order.items}`.

Literals, paths, indexes, comparison, logic, `empty`, the ternary operator, arithmetic and texts with expressions inside
(`order-${id}`) are translated; of methods, `contains`, `equals` and `getVariable`. Whatever else reaches into Java (methods,
functions, beans) is refused: there is no Java.

What differs stays different: FEEL adds texts with `+` where JUEL would make numbers of them, and compares no text with a
number. Indexes begin with 0 in JUEL and with 1 in FEEL: they are shifted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from typing import Final, NoReturn

from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.lexer import KEYWORDS

MOST_CHARACTERS: Final = 20_000
"""Of a text, and of what it becomes: `contains` names its receiver three times."""
DEEPEST: Final = 50
"""Parentheses and operators inside each other."""
_LARGEST_EXPONENT: Final = 50

_OPENING: Final = re.compile(r"(\\?)[$#]\{")
_CLOSING: Final = re.compile(r"""[^}'"\\]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(\})|.""", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<name>[^\W\d][\w$]*|\$[\w$]+)
      | (?P<sign>&&|\|\||==|!=|<=|>=|[<>!+\-*/%?:()\[\].,])
      | (?P<end>$)
      | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_MEMBER: Final = re.compile(r"[^\W\d][\w$]*")
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_FIRST_WORDS: Final = frozenset(name.split()[0] for name in BUILT_INS if " " in name)
"""With what follows, they could become the name of a function: `date and time`."""
_STYLE: Final = re.compile(r"\.\s*\w+\s*\(|&&|\|\||==|!(?!=)")
"""What JUEL and Java write, and FEEL does not."""
_JAVA_OBJECTS: Final = frozenset(
    ("execution", "task", "caseExecution", "variableScope", "authenticatedUserId", "delegateExecution")
)
_COUNTERS: Final = {
    "nrOfActiveInstances": "numberOfActiveInstances",
    "nrOfCompletedInstances": "numberOfCompletedInstances",
}
"""The counters of multi-instance activities have BPMN's own names here."""
_WORDS: Final = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "div": "/",
    "mod": "%",
}


class JuelError(ValueError):
    """An expression that is not JUEL, or that FEEL has no words for."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found} {remedy}")
        self.found = found
        self.remedy = remedy


class _Level(IntEnum):
    """How tightly a FEEL text holds together; what holds less than its neighbour needs parentheses."""

    CHOICE = 0
    OR = 1
    AND = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    ATOM = 7


_OPERATORS: Final = {
    "||": (_Level.OR, "or"),
    "&&": (_Level.AND, "and"),
    "==": (_Level.COMPARISON, "="),
    "!=": (_Level.COMPARISON, "!="),
    "<": (_Level.COMPARISON, "<"),
    ">": (_Level.COMPARISON, ">"),
    "<=": (_Level.COMPARISON, "<="),
    ">=": (_Level.COMPARISON, ">="),
    "+": (_Level.SUM, "+"),
    "-": (_Level.SUM, "-"),
    "*": (_Level.PRODUCT, "*"),
    "/": (_Level.PRODUCT, "/"),
    "%": (_Level.PRODUCT, "%"),
}
_BINDING: Final = {sign: 2 * level + (1 if sign in ("<", ">", "<=", ">=") else 0) for sign, (level, _) in _OPERATORS.items()}
"""JUEL's own precedence: `a < b == c` compares first, then asks whether that is c."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of a translated expression: FEEL, and how strongly its operator binds."""

    text: str
    level: _Level = _Level.ATOM
    literal: str | None = None
    """The text that it is, if it is a literal one."""
    is_integer: bool = False
    java: str = ""
    """The name of the Java object that it is."""

    def at(self, level: _Level) -> str:
        """As a part of something that needs at least this level."""
        return self.text if self.level >= level else f"({self.text})"


def has_juel(text: str) -> bool:
    """Whether there is a `${…}` or `#{…}` in a text."""
    return "${" in text or "#{" in text


def looks_like_juel(text: str) -> bool:
    """Whether a text without `${…}` is written as JUEL or Java write it: with methods, `&&`, `||`, `!` or `==`."""
    return _STYLE.search(text) is not None


def translate_text(text: str) -> str:
    """The FEEL of a text with `${…}` or `#{…}` in it: the expression if it is all, else a text made of parts.

    Raises JuelError.
    """
    _check_length(text)
    parts = _split(text.strip())
    if len(parts) == 1 and isinstance(parts[0], _Inner):
        return translate_expression(parts[0].text)
    written = [
        f"string({translate_expression(part.text)})" if isinstance(part, _Inner) else write_text(part) for part in parts
    ]
    joined = f"string join([{', '.join(written)}])" if len(written) > 1 else "".join(written) or '""'
    _check_length(joined)
    return joined


def translate_expression(text: str) -> str:
    """The FEEL of what stands inside `${…}`. Raises JuelError."""
    _check_length(text)
    return _Parser(text).parse().text


def write_text(text: str) -> str:
    """A text as a FEEL literal."""
    return f'"{text.translate(_ESCAPES)}"'


def write_name(name: str) -> str:
    """A variable's name as FEEL reads it: in backticks if it would be something else without them."""
    if _PLAIN_NAME.fullmatch(name) and name not in KEYWORDS and name not in _FIRST_WORDS:
        return name
    return f"`{name.replace('`', '')}`"


def find_name(text: str) -> str | None:
    """The one name that stands inside `${…}`, if that is all there is: the name of a bean."""
    found = re.fullmatch(r"\s*[$#]\{\s*([^\W\d][\w$]*)\s*\}\s*", text)
    return found.group(1) if found else None


@dataclass(frozen=True, slots=True)
class _Inner:
    """The text of an expression between `${` and `}`."""

    text: str


def _split(text: str) -> list[str | _Inner]:
    parts: list[str | _Inner] = []
    plain = ""
    at = 0
    while found := _OPENING.search(text, at):
        plain += text[at : found.start()]
        at = found.end()
        if found.group(1):
            plain += found.group()[1:]
            continue
        if plain:
            parts.append(plain)
            plain = ""
        begin = at
        while (piece := _CLOSING.match(text, at)) is not None and piece.group(1) is None:
            at = piece.end()
        if piece is None:
            raise JuelError(f"Expected '}}' behind {text[begin - 2 : begin + 20]!r}, but there is none.", "Close it.")
        parts.append(_Inner(text[begin:at]))
        at = piece.end()
    plain += text[at:]
    return [*parts, plain] if plain else parts


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise JuelError(
            f"Expected an expression of at most {MOST_CHARACTERS:,} characters in FEEL, but it gets longer.",
            "Split it, or write it in FEEL.",
        )


class _Parser:
    """One expression, by precedence climbing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._kind = ""
        self._token = ""
        self._begin = 0
        self._advance()

    def parse(self) -> _Term:
        """Translate the whole text to FEEL. Raises JuelError."""
        term = self._parse_choice()
        if self._kind != "end":
            self._refuse("the end")
        return term

    # --- tokens ---

    def _advance(self) -> str:
        """The current token; go to the next one."""
        token = self._token
        found = _TOKEN.match(self._text, self._at)
        assert found is not None  # noqa: S101 - the last alternatives match anything
        kind = found.lastgroup or "end"
        self._kind, self._token, self._begin, self._at = kind, found.group(kind), found.start(kind), found.end()
        if kind == "other":
            self._refuse("an expression")
        if kind == "name" and self._token in _WORDS:
            self._kind, self._token = "sign", _WORDS[self._token]
        elif kind == "name" and self._token == "empty":  # noqa: S105 - a word of the language
            self._kind = "empty"
        return token

    def _take(self, sign: str) -> bool:
        if self._kind == "sign" and self._token == sign:
            self._advance()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse(repr(sign))

    def _refuse(self, expected: str) -> NoReturn:
        found = repr(self._token) if self._token else "it ends there"
        what = found if not self._token else f"there is {found}"
        raise JuelError(
            f"Expected {expected} at character {self._begin + 1} of the expression {self._shorten()}, but {what}.",
            "Correct it, or write it in FEEL with a leading '='.",
        )

    def _shorten(self) -> str:
        return repr(self._text if len(self._text) <= 80 else f"{self._text[:77]}…")

    def _refuse_java(self, what: str) -> NoReturn:
        raise JuelError(
            f"Expected an expression without Java, but {self._shorten()} {what}.",
            "Write it in FEEL with a leading '=', or let an activity compute the value.",
        )

    # --- grammar ---

    def _parse_choice(self) -> _Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise JuelError(
                f"Expected at most {DEEPEST} expressions inside each other, but there are more.", "Split the expression."
            )
        condition = self._parse_binary(0)
        if self._take("?"):
            first = self._parse_choice()
            self._expect(":")
            second = self._parse_choice()
            condition = _made(
                f"if {condition.at(_Level.OR)} then {first.at(_Level.OR)} else {second.at(_Level.CHOICE)}", _Level.CHOICE
            )
        self._depth -= 1
        return condition

    def _parse_binary(self, least: int) -> _Term:
        left = self._parse_unary()
        while self._kind == "sign" and (binding := _BINDING.get(self._token, -1)) >= least:
            level, sign = _OPERATORS[self._advance()]
            right = self._parse_binary(binding + 1)
            left = _combine(left, level, sign, right)
        return left

    def _parse_unary(self) -> _Term:
        signs: list[str] = []
        while (self._kind == "sign" and self._token in ("!", "-")) or (self._kind == "empty"):
            signs.append(self._advance())
            if len(signs) > DEEPEST:
                self._refuse("a value")
        term = self._parse_postfix()
        for sign in reversed(signs):
            if sign == "!":
                term = _made(f"not({term.text})")
            elif sign == "-":
                term = _made(f"-{term.at(_Level.ATOM)}", _Level.SIGN)
            else:
                term = _made(f'list contains([null, "", [], {{}}], {term.text})')
        return term

    def _parse_postfix(self) -> _Term:
        term = self._parse_value()
        while True:
            if self._take("."):
                term = self._parse_member(term)
            elif self._take("["):
                index = self._parse_choice()
                self._expect("]")
                term = self._find_item(term, index)
            else:
                break
        if term.java:
            self._refuse_java(f"uses the Java object {term.java!r}")
        return term

    def _parse_member(self, term: _Term) -> _Term:
        # After a dot, `and` and its like are names.
        found = _MEMBER.match(self._text, self._begin)
        if found is None:
            self._refuse("a name")
        name = found.group()
        self._at = found.end()
        self._advance()
        if self._take("("):
            return self._call_method(term, name, self._parse_arguments())
        if term.java:
            self._refuse_java(f"uses the Java object {term.java!r}")
        return _made(f"{term.at(_Level.ATOM)}.{write_name(name)}")

    def _parse_arguments(self) -> list[_Term]:
        arguments: list[_Term] = []
        if self._take(")"):
            return arguments
        arguments.append(self._parse_choice())
        while self._take(","):
            arguments.append(self._parse_choice())
        self._expect(")")
        return arguments

    def _parse_value(self) -> _Term:
        kind = self._kind
        if kind == "number":
            return self._write_number(self._advance())
        if kind == "text":
            return _write_literal(_ESCAPED.sub(r"\1", self._advance()[1:-1]))
        if kind == "name":
            return self._parse_name(self._advance())
        if not self._take("("):
            self._refuse("a value")
        inner = self._parse_choice()
        self._expect(")")
        return inner

    def _parse_name(self, name: str) -> _Term:
        if name in ("true", "false", "null"):
            return _Term(name)
        if self._take("("):
            arguments = self._parse_arguments()
            if name == "getVariable":
                return self._get_variable(arguments)
            self._refuse_java(f"calls the function {name!r}")
        if name in _JAVA_OBJECTS:
            return _Term(name, java=name)
        return _Term(write_name(_COUNTERS.get(name, name)))

    def _write_number(self, text: str) -> _Term:
        try:
            number = Decimal(text)
        except InvalidOperation:
            self._refuse("a number")
        if number and abs(number.adjusted()) > _LARGEST_EXPONENT:
            self._refuse("a number of at most 50 digits")
        return _Term(format(number, "f"), is_integer=text.isdigit())

    # --- what FEEL says in other words ---

    def _find_item(self, term: _Term, index: _Term) -> _Term:
        if index.literal is not None:
            return _made(f"get value({term.text}, {index.text})")
        if index.is_integer:
            return _made(f"{term.at(_Level.ATOM)}[{int(index.text) + 1}]")
        # Not as a filter: inside one, the names of the items would come before those of the variables.
        position = f"sublist({term.text}, {index.at(_Level.SUM)} + 1, 1)[1]"
        return _made(
            f"if {index.at(_Level.ATOM)} instance of string then get value({term.text}, {index.text}) else {position}",
            _Level.CHOICE,
        )

    def _call_method(self, term: _Term, name: str, arguments: list[_Term]) -> _Term:
        if name == "getVariable" and term.java:
            return self._get_variable(arguments)
        if term.java or len(arguments) != 1 or name not in ("contains", "equals"):
            self._refuse_java(f"calls the method {name!r}")
        (argument,) = arguments
        if name == "equals":
            return _combine(term, _Level.COMPARISON, "=", argument)
        plain = f"contains({term.text}, {argument.text})"
        if term.literal is not None:
            return _made(plain)
        # Java lists and Java texts both have this method.
        return _made(
            f"if {term.at(_Level.ATOM)} instance of list<Any> then list contains({term.text}, {argument.text}) else {plain}",
            _Level.CHOICE,
        )

    def _get_variable(self, arguments: list[_Term]) -> _Term:
        if len(arguments) != 1 or not arguments[0].literal:
            self._refuse_java("calls 'getVariable' with something else than one name")
        return _Term(write_name(arguments[0].literal))


def _combine(left: _Term, level: _Level, sign: str, right: _Term) -> _Term:
    if sign == "%":
        return _made(f"modulo({left.text}, {right.text})")
    # FEEL has no chains of comparisons; sums and products go from left to right in both.
    before = left.at(_Level(level + 1) if level is _Level.COMPARISON else level)
    return _made(f"{before} {sign} {right.at(_Level(level + 1))}", level)


def _write_literal(text: str) -> _Term:
    return _Term(write_text(text), literal=text)


def _made(text: str, level: _Level = _Level.ATOM) -> _Term:
    _check_length(text)
    return _Term(text, level)
