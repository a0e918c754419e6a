"""From tokens to the tree of a filter: a parser by recursive descent, with a bound on depth and size.

filter    = and { OR and }
and       = not { AND not }
not       = NOT not | ( filter ) | HAS field | field test
test      = sign value | [NOT] IN ( value { , value } ) | [NOT] STARTS WITH value
field     = column | metadata . key | state . key | reference | reference . part
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from holdfast.errors import FilterError
from holdfast.filters.lexer import Kind, Token, split_filter
from holdfast.filters.syntax import (
    And,
    Attribute,
    AttributeKind,
    Column,
    Condition,
    Field,
    Has,
    Not,
    OneOf,
    Or,
    Order,
    Value,
)
from holdfast.filters.values import COLUMNS, FIELDS, KEYED, Refusal, compare, make_attribute, read_value, start_with

DEEPEST: Final = 50
"""How deep parentheses and NOT nest at most."""
MOST_VALUES: Final = 500
"""How many values all conditions of a filter have at most together."""
SIGNS: Final = ("=", "!=", "<", "<=", ">", ">=")
ORDERS: Final = "created, closed, state.<key>, metadata.<key>, reference or reference.<part>, and then asc or desc"

T = TypeVar("T")


def parse_filter(text: str) -> Condition:
    """The condition that the text of a filter states. Raises FilterError, which points at the place."""
    parser = _Parser(text, "where")
    condition = parser.read_or()
    parser.expect_end("AND, OR or the end")
    return condition


def parse_order(text: str) -> Order:
    """The order that a text such as `state.amount desc` states; without a direction it ascends. Raises FilterError."""
    parser = _Parser(text, "order_by")
    place = parser.token
    field = parser.read_field(ORDERS)
    if isinstance(field, Column) and field not in (Column.CREATED, Column.CLOSED):
        parser.refuse(place, ORDERS)
    direction = "DESC" if parser.take_word("DESC") else "ASC"
    if direction == "ASC":
        parser.take_word("ASC")
    parser.expect_end("asc, desc or the end")
    return Order(field, is_descending=direction == "DESC")


class _Parser:
    """Reads one text from left to right; `token` is the next piece of it."""

    def __init__(self, text: str, what: str) -> None:
        self._text, self._what = text, what
        self._tokens = split_filter(text, what)
        self._next = 0
        self._depth = self._values = 0

    # --- conditions ---

    def read_or(self) -> Condition:
        """One or several conditions of which any will do."""
        items = [self._read_and()]
        while self.take_word("OR"):
            items.append(self._read_and())
        return items[0] if len(items) == 1 else Or(tuple(items))

    def _read_and(self) -> Condition:
        items = [self._read_not()]
        while self.take_word("AND"):
            items.append(self._read_not())
        return items[0] if len(items) == 1 else And(tuple(items))

    def _read_not(self) -> Condition:
        place = self.token
        if self.take_word("NOT"):
            return self._nest(place, lambda: Not(self._read_not()))
        if self._take_sign("("):
            found = self._nest(place, self.read_or)
            if not self._take_sign(")"):
                self.refuse(self.token, "AND, OR or )", "A parenthesis is open.")
            return found
        if self.take_word("HAS"):
            self._count(place)
            return Has(self.read_field())
        return self._read_test(self.read_field())

    def _read_test(self, field: Field) -> Condition:
        place = self.token
        if place.kind is Kind.SIGN and place.text in SIGNS:
            self._advance()
            value = self._read_value(field)
            return self._checked(place, lambda: compare(field, place.text, value))
        is_negated = self.take_word("NOT")
        if self.take_word("IN"):
            test: Condition = OneOf(field, self._read_values(field))
        elif self.take_word("STARTS"):
            if not self.take_word("WITH"):
                self.refuse(self.token, "WITH")
            prefix = self.token
            if prefix.kind not in (Kind.TEXT, Kind.QUOTED):
                self.refuse(prefix, "text in single quotes")
            self._count(prefix)
            self._advance()
            test = self._checked(place, lambda: start_with(field, prefix.text))
        else:
            hint = "For an equal value write =." if place.upper in ("IS", "LIKE", "EQ") else ""
            self.refuse(place if not is_negated else self.token, f"{', '.join(SIGNS)}, IN or STARTS WITH", hint)
        return Not(test) if is_negated else test

    # --- fields and values ---

    def read_field(self, expected: str = FIELDS) -> Field:
        """A column, or an attribute by its key. `expected`: those that are possible here, in words."""
        place = self.token
        name = place.text.lower()
        if place.kind is not Kind.WORD or not (name in COLUMNS or name in KEYED):
            self.refuse(place, expected, "A key of a state is written state.key." if place.kind is Kind.WORD else "")
        self._advance()
        if name in COLUMNS:
            return COLUMNS[name]
        if not self._take_sign("."):
            if name == "reference":
                return Attribute(AttributeKind.REFERENCE)
            self.refuse(self.token, f". and a key, as in {name}.key")
        return self._read_key(name)

    def _read_key(self, group: str) -> Attribute:
        place = self.token
        if place.kind not in (Kind.WORD, Kind.QUOTED):
            self.refuse(place, f'a key, as in {group}.key or {group}."another key"')
        self._advance()
        parts = [place.text]
        while group != "reference" and place.kind is Kind.WORD and self._take_sign("."):  # keys may have dots
            following = self.token
            if following.kind is not Kind.WORD:
                self.refuse(following, "the rest of a key")
            self._advance()
            parts.append(following.text)
        return self._checked(place, lambda: make_attribute(group, ".".join(parts)))

    def _read_values(self, field: Field) -> tuple[Value, ...]:
        if not self._take_sign("("):
            self.refuse(self.token, "( and values, as in status IN ('failed', 'blocked')")
        values = [self._read_value(field)]
        while self._take_sign(","):
            values.append(self._read_value(field))
        if not self._take_sign(")"):
            self.refuse(self.token, ", or )")
        return tuple(dict.fromkeys(values))

    def _read_value(self, field: Field) -> Value:
        place = self.token
        self._count(place)
        value = self._checked(place, lambda: read_value(field, place))
        self._advance()
        return value

    # --- tokens ---

    @property
    def token(self) -> Token:
        """The next token, which is not taken yet."""
        return self._tokens[self._next]

    def take_word(self, word: str) -> bool:
        """Take the next token if it is this keyword."""
        return self._take_if(self.token.upper == word)

    def _take_sign(self, sign: str) -> bool:
        return self._take_if(self.token.kind is Kind.SIGN and self.token.text == sign)

    def _take_if(self, is_it: bool) -> bool:
        if is_it:
            self._advance()
        return is_it

    def _advance(self) -> None:
        if self.token.kind is not Kind.END:
            self._next += 1

    def expect_end(self, expected: str) -> None:
        """Raises FilterError if something is left."""
        if self.token.kind is not Kind.END:
            self.refuse(self.token, expected)

    def refuse(self, token: Token, expected: str, hint: str = "") -> NoReturn:
        """Raise FilterError for a token in whose place something else is expected."""
        raise FilterError.at(self._what, self._text, token.position, expected, hint)

    def _checked(self, place: Token, make: Callable[[], T]) -> T:
        try:
            return make()
        except Refusal as refusal:
            self.refuse(place, refusal.expected, refusal.hint)

    def _nest(self, place: Token, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            self.refuse(place, f"at most {DEEPEST} levels of parentheses and NOT")
        found = read()
        self._depth -= 1
        return found

    def _count(self, place: Token) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            self.refuse(place, f"at most {MOST_VALUES} values")
