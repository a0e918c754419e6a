"""What an expression is made of: one frozen value for each kind of node. `at` is the offset in the text where it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.feel.values import Value

# --- types, as they stand behind `instance of` and parameters ---


@dataclass(frozen=True, slots=True)
class NamedType:
    """A built-in type, or the name of one that somebody else knows."""

    name: str


@dataclass(frozen=True, slots=True)
class ListType:
    """`list<number>`: lists whose items all belong to a type."""

    item: Type


@dataclass(frozen=True, slots=True)
class RangeType:
    """`range<number>`: ranges whose ends belong to a type."""

    end: Type


@dataclass(frozen=True, slots=True)
class ContextType:
    """`context<name: string, age: number>`: contexts with at least these entries."""

    entries: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class FunctionType:
    """`function<number, string> -> boolean`: functions by what they take and return."""

    parameters: tuple[Type, ...]
    result: Type


Type: TypeAlias = NamedType | ListType | RangeType | ContextType | FunctionType


# --- expressions ---


@dataclass(frozen=True, slots=True)
class Node:
    """The root of all parts of an expression; `at` is the offset where one begins."""

    at: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, string, boolean, null, or what stands behind an `@`."""

    value: Value


@dataclass(frozen=True, slots=True)
class BadLiteral(Node):
    """What stands behind an `@` and has no meaning: null, with a warning."""

    text: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A variable, or a function of the language if there is no such variable."""

    name: str


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    """`[1, 2]`: a list of what its items evaluate to."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ContextLiteral(Node):
    """`{a: 1, b: a + 1}`: each entry sees those before it."""

    entries: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class RangeLiteral(Node):
    """`[1..3]`, `(1..3]`, `< 3`: an end that is not there is None."""

    start: Node | None
    end: Node | None
    start_included: bool
    end_included: bool


@dataclass(frozen=True, slots=True)
class Path(Node):
    """`order.total`; of a list, of each of its items."""

    source: Node
    name: str


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """`list[condition]`: the items that meet it; `list[number]`: the item at that position."""

    source: Node
    condition: Node


@dataclass(frozen=True, slots=True)
class Invocation(Node):
    """`f(1, 2)` or `f(a: 1, b: 2)`."""

    function: Node
    positional: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`left + right`, or the same with `-`, `*`, `/` or `**`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """`-x`; a number with a sign is a Literal instead."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`= != < <= > >=`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Between(Node):
    """`x between a and b`, where both ends are included."""

    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class In(Node):
    """`x in (tests)`: whether one of them is met."""

    operand: Node
    tests: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`a and b and c`, or the same with `or`."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class InstanceOf(Node):
    """`x instance of number`: whether a value belongs to a type."""

    operand: Node
    type: Type


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if a then b else c`."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Iterator:
    """`x in list`, or `x in 1..3`, which has an end."""

    name: str
    start: Node
    end: Node | None


@dataclass(frozen=True, slots=True)
class For(Node):
    """`for x in a, y in b return x + y`."""

    iterators: tuple[Iterator, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Quantified(Node):
    """`some x in a satisfies x > 1`, or `every`."""

    is_every: bool
    iterators: tuple[Iterator, ...]
    condition: Node


@dataclass(frozen=True, slots=True)
class FunctionDefinition(Node):
    """`function(a: number, b) a + b`."""

    parameters: tuple[tuple[str, Type | None], ...]
    body: Node
    is_external: bool = False


# --- unary tests ---


@dataclass(frozen=True, slots=True)
class ComparisonTest(Node):
    """`< 5`, as a test of `?`."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class UnaryTests(Node):
    """A cell of a decision table: whether one of the tests is met, or none of them. Without tests (`-`), always."""

    tests: tuple[Node, ...]
    is_negated: bool = False
