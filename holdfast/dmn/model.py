"""What a decision model is made of, as its XML says it: frozen values, in the words of the DMN specification.

Names have single spaces between their words. `place` tells a person where an element stands; `type_ref` is "" where there is
none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class HitPolicy(Enum):
    """What becomes of the rules that match, by the letter that stands in the table's corner (DMN 8.2.11)."""

    UNIQUE = "U"
    ANY = "A"
    PRIORITY = "P"
    FIRST = "F"
    RULE_ORDER = "R"
    OUTPUT_ORDER = "O"
    COLLECT = "C"
    SUM = "C+"
    MIN = "C<"
    MAX = "C>"
    COUNT = "C#"


# --- boxed expressions ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The root of all boxed expressions: where one stands in the model, and the type of its value."""

    place: str
    type_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralExpression(Box):
    """A text of FEEL. Without text, it is null."""

    text: str


@dataclass(frozen=True, slots=True)
class InformationItem:
    """A name and the type of what it stands for."""

    name: str
    type_ref: str = ""


@dataclass(frozen=True, slots=True)
class UnaryTests:
    """A text of unary tests, and where it stands."""

    text: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputClause:
    """A column of conditions. `values` are the tests that the input has to meet at all.

    `variable` is the name that its cells have for the value beside `?`, if a modeler of Camunda gave it one.
    """

    label: str
    expression: LiteralExpression
    variable: str = ""
    values: UnaryTests | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputClause:
    """A column of results. `values` are the allowed ones, the most important first."""

    name: str
    label: str
    place: str
    type_ref: str = ""
    values: UnaryTests | None = None
    default: LiteralExpression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row: a cell for each input, for each output and for each annotation. The first rule has the number 1."""

    number: int
    id: str
    inputs: tuple[UnaryTests, ...]
    outputs: tuple[LiteralExpression, ...]
    annotations: tuple[tuple[str, str], ...] = ()
    """Names and texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTable(Box):
    """A decision table with its rules in rows."""

    name: str
    hit_policy: HitPolicy
    inputs: tuple[InputClause, ...]
    outputs: tuple[OutputClause, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """An entry of a context. The one without a variable is the result cell."""

    variable: InformationItem | None
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Box):
    """Entries, each of which sees those before it; their context is the value, or the result cell if there is one."""

    entries: tuple[ContextEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation(Box):
    """A call of a function with named arguments; without an expression, an argument is null."""

    called: Expression
    bindings: tuple[tuple[InformationItem, Expression | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDefinition(Box):
    """A function of the FEEL kind."""

    parameters: tuple[InformationItem, ...]
    body: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class List(Box):
    """A list of what its items evaluate to."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation(Box):
    """A list of contexts, one for each row, with the columns' names for keys."""

    columns: tuple[InformationItem, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Box):
    """A boxed `if`, `then` and `else` (DMN 1.4)."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class For(Box):
    """What `body` is for each item of `source` (DMN 1.4)."""

    variable: str
    source: Expression
    body: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(Box):
    """Whether `condition` holds for every item of `source`, or for some (DMN 1.4)."""

    is_every: bool
    variable: str
    source: Expression
    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Box):
    """The items of `source` that `match` holds for (DMN 1.4)."""

    source: Expression
    match: Expression


Expression: TypeAlias = (
    LiteralExpression
    | DecisionTable
    | Context
    | Invocation
    | FunctionDefinition
    | List
    | Relation
    | Conditional
    | For
    | Quantified
    | Filter
)


# --- types ---


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDefinition:
    """A type of the model's own: another type with fewer values, a structure, a list of these, or a function."""

    name: str
    place: str
    type_ref: str = ""
    is_collection: bool = False
    allowed_values: UnaryTests | None = None
    """What each value has to meet; of a collection, each item."""
    type_constraint: UnaryTests | None = None
    """What the value as a whole has to meet (DMN 1.5)."""
    components: tuple[ItemDefinition, ...] = ()
    is_function: bool = False


# --- the decision requirements graph ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """Anything that requirements can name. `variable` has the name that expressions use for it."""

    id: str
    name: str
    place: str
    variable: InformationItem


@dataclass(frozen=True, slots=True, kw_only=True)
class InputData(Element):
    """A value that comes from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Element):
    """A decision: its logic and the ids of what it requires. Without logic, it is null."""

    expression: Expression | None
    required_decisions: tuple[str, ...] = ()
    required_inputs: tuple[str, ...] = ()
    required_knowledge: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessKnowledgeModel(Element):
    """A function that decisions and other knowledge models may call. Without logic, it gives null."""

    logic: FunctionDefinition | None
    required_knowledge: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionService(Element):
    """Some decisions as one function, by their ids. Its parameters are the input data, then the input decisions."""

    output_decisions: tuple[str, ...]
    encapsulated_decisions: tuple[str, ...] = ()
    input_decisions: tuple[str, ...] = ()
    input_data: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """Another model, by its namespace, whose elements and types stand behind `name`; without one, beside the model's own."""

    name: str
    namespace: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """A whole model. The elements of the graph are kept by id."""

    id: str
    name: str
    namespace: str
    version: str
    """Of DMN: "1.3"."""
    decisions: dict[str, Decision]
    inputs: dict[str, InputData]
    knowledge: dict[str, BusinessKnowledgeModel]
    services: dict[str, DecisionService]
    types: dict[str, ItemDefinition]
    """By name."""
    imports: tuple[Import, ...] = ()
