"""From XML to boxed expressions: one function for each kind (DMN 10.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from lxml import etree

from holdfast.core.safe_texts import count_noun
from holdfast.dmn.elements import Elements, clean_name, clean_type, describe
from holdfast.dmn.loading_tables import load_literal, load_table
from holdfast.dmn.model import (
    Conditional,
    Context,
    ContextEntry,
    Expression,
    Filter,
    For,
    FunctionDefinition,
    InformationItem,
    Invocation,
    List,
    LiteralExpression,
    Quantified,
    Relation,
)

Load: TypeAlias = Callable[[Elements, etree._Element, str, str], Expression]


def find_expression(elements: Elements, element: etree._Element, place: str, name: str) -> Expression | None:
    """The boxed expression inside an element, if there is one. `name` is what a table in it is called."""
    found = [child for child in element if elements.name_of(child) in LOADERS]
    if len(found) > 1:
        elements.problems.add(place, f"Expected one expression, but there are {len(found)}. Keep one.")
    if not found:
        return None
    kind = elements.name_of(found[0])
    return LOADERS[kind](elements, found[0], _describe_box(kind, found[0], place), name)


def load_expression(elements: Elements, element: etree._Element | None, place: str, name: str) -> Expression:
    """As find_expression, where there has to be one."""
    found = None if element is None else find_expression(elements, element, place, name)
    if found is None:
        elements.problems.add(place, "Expected an expression, but there is none. Add one.")
        return LiteralExpression(place=place, text="")
    return found


def _describe_box(kind: str, element: etree._Element, place: str) -> str:
    return place if kind == "literalExpression" else describe(_WORDS.get(kind, kind), element, place)


def load_variable(elements: Elements, element: etree._Element, place: str) -> InformationItem:
    """A variable, parameter or column: it needs a name."""
    name = clean_name(element.get("name"))
    if not name:
        elements.problems.add(place, f"Expected a name, but line {element.sourceline} gives none. Name it.")
    return InformationItem(name, clean_type(element.get("typeRef")))


def _load_literal(elements: Elements, element: etree._Element, place: str, _: str) -> LiteralExpression:
    elements.check_children(element, place, frozenset(("text", "importedValues")))
    return load_literal(elements, element, place)


def _load_context(elements: Elements, element: etree._Element, place: str, name: str) -> Context:
    elements.check_children(element, place, frozenset(("contextEntry",)))
    entries: list[ContextEntry] = []
    seen: set[str] = set()
    children = elements.children(element, "contextEntry")
    for number, child in enumerate(children, 1):
        at = describe(f"entry {number}", child, place)
        elements.check_children(child, at, LOADERS.keys() | {"variable"})
        inner = elements.child(child, "variable")
        variable = None if inner is None else load_variable(elements, inner, at)
        if variable is None and number < len(children):
            # DMN 10.2.1.4: the result cell is the last.
            elements.problems.add(at, "Expected a variable, but there is none. Only the last, the result, may lack it.")
        elif variable is not None:
            if variable.name in seen:
                elements.problems.add(at, f"Expected another name than {variable.name!r}, but it stands before. Rename one.")
            seen.add(variable.name)
            at = f"{place}, entry {variable.name!r}"
        inside = name if variable is None else f"{name} / {variable.name}"
        entries.append(ContextEntry(variable, load_expression(elements, child, at, inside)))
    return Context(place=place, type_ref=clean_type(element.get("typeRef")), entries=tuple(entries))


def _load_invocation(elements: Elements, element: etree._Element, place: str, name: str) -> Invocation:
    elements.check_children(element, place, LOADERS.keys() | {"binding"})
    bindings: dict[str, tuple[InformationItem, Expression | None]] = {}
    for number, child in enumerate(elements.children(element, "binding"), 1):
        at = describe(f"binding {number}", child, place)
        elements.check_children(child, at, LOADERS.keys() | {"parameter"})
        inner = elements.child(child, "parameter")
        if inner is None:
            elements.problems.add(at, "Expected a parameter, but there is none. Say which one is bound.")
            continue
        parameter = load_variable(elements, inner, at)
        if parameter.name in bindings:
            elements.problems.add(at, f"Expected each parameter once, but {parameter.name!r} is bound twice. Keep one.")
        bound = find_expression(elements, child, f"{place}, binding {parameter.name!r}", name)
        bindings[parameter.name] = (parameter, bound)
    return Invocation(
        place=place,
        type_ref=clean_type(element.get("typeRef")),
        called=load_expression(elements, element, place, name),
        bindings=tuple(bindings.values()),
    )


def load_function(elements: Elements, element: etree._Element, place: str, name: str) -> FunctionDefinition:
    """A function definition of the kind FEEL; the others are named as problems."""
    kind = element.get("kind", "FEEL")
    if kind != "FEEL":
        elements.problems.add(
            place, f"Expected a function of the kind FEEL, but it is {kind!r}, which cannot run. Use FEEL."
        )
    elements.check_children(element, place, LOADERS.keys() | {"formalParameter"})
    parameters = tuple(load_variable(elements, child, place) for child in elements.children(element, "formalParameter"))
    if len({parameter.name for parameter in parameters}) < len(parameters):
        elements.problems.add(place, "Expected another name for each parameter, but one stands twice. Rename one.")
    return FunctionDefinition(
        place=place,
        type_ref=clean_type(element.get("typeRef")),
        parameters=parameters,
        body=find_expression(elements, element, place, name) if kind == "FEEL" else None,
    )


def _load_list(elements: Elements, element: etree._Element, place: str, name: str) -> List:
    elements.check_children(element, place, frozenset(LOADERS))
    return List(place=place, type_ref=clean_type(element.get("typeRef")), items=_load_cells(elements, element, place, name))


def _load_cells(elements: Elements, element: etree._Element, place: str, name: str) -> tuple[Expression, ...]:
    cells = [(elements.name_of(child), child) for child in element if elements.name_of(child) in LOADERS]
    return tuple(
        LOADERS[kind](elements, child, _describe_box(kind, child, f"{place}, item {number}"), name)
        for number, (kind, child) in enumerate(cells, 1)
    )


def _load_relation(elements: Elements, element: etree._Element, place: str, name: str) -> Relation:
    elements.check_children(element, place, frozenset(("column", "row")))
    columns = tuple(load_variable(elements, child, place) for child in elements.children(element, "column"))
    rows: list[tuple[Expression, ...]] = []
    for number, child in enumerate(elements.children(element, "row"), 1):
        at = describe(f"row {number}", child, place)
        elements.check_children(child, at, frozenset(LOADERS))
        cells = _load_cells(elements, child, at, name)
        if len(cells) != len(columns):
            elements.problems.add(
                at,
                f"Expected {count_noun(len(columns), 'cell')}, one for each column, but there are {len(cells)}. "
                "Add or take out some.",
            )
        rows.append(cells)
    return Relation(place=place, type_ref=clean_type(element.get("typeRef")), columns=columns, rows=tuple(rows))


def _load_conditional(elements: Elements, element: etree._Element, place: str, name: str) -> Conditional:
    condition, then, otherwise = _load_parts(elements, element, place, name, ("if", "then", "else"))
    return Conditional(
        place=place, type_ref=clean_type(element.get("typeRef")), condition=condition, then=then, otherwise=otherwise
    )


def _load_for(elements: Elements, element: etree._Element, place: str, name: str) -> For:
    source, body = _load_parts(elements, element, place, name, ("in", "return"))
    variable = _load_iterator(elements, element, place)
    return For(place=place, type_ref=clean_type(element.get("typeRef")), variable=variable, source=source, body=body)


def _load_quantified(elements: Elements, element: etree._Element, place: str, name: str) -> Quantified:
    source, condition = _load_parts(elements, element, place, name, ("in", "satisfies"))
    return Quantified(
        place=place,
        type_ref=clean_type(element.get("typeRef")),
        is_every=elements.name_of(element) == "every",
        variable=_load_iterator(elements, element, place),
        source=source,
        condition=condition,
    )


def _load_filter(elements: Elements, element: etree._Element, place: str, name: str) -> Filter:
    source, match = _load_parts(elements, element, place, name, ("in", "match"))
    return Filter(place=place, type_ref=clean_type(element.get("typeRef")), source=source, match=match)


def _load_parts(
    elements: Elements, element: etree._Element, place: str, name: str, parts: tuple[str, ...]
) -> list[Expression]:
    """The expressions in children of these names, all of which have to be there."""
    elements.check_children(element, place, frozenset(parts))
    return [load_expression(elements, elements.child(element, part), f"{place}, its {part!r}", name) for part in parts]


def _load_iterator(elements: Elements, element: etree._Element, place: str) -> str:
    variable = clean_name(element.get("iteratorVariable"))
    if not variable:
        elements.problems.add(place, "Expected an iteratorVariable, but there is none. Name what stands for each item.")
    return variable


_WORDS: Final = {
    "decisionTable": "decision table",
    "functionDefinition": "function definition",
}
LOADERS: Final[Mapping[str, Load]] = {
    "literalExpression": _load_literal,
    "decisionTable": load_table,
    "context": _load_context,
    "invocation": _load_invocation,
    "functionDefinition": load_function,
    "list": _load_list,
    "relation": _load_relation,
    "conditional": _load_conditional,
    "for": _load_for,
    "every": _load_quantified,
    "some": _load_quantified,
    "filter": _load_filter,
}
"""How each kind of boxed expression is loaded, by the local name of its element."""
