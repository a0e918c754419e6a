"""From the XML of a decision table to its value (DMN 8.3)."""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.core.safe_texts import count_noun
from holdfast.dmn.elements import Elements, clean_name, clean_type, describe
from holdfast.dmn.model import DecisionTable, HitPolicy, InputClause, LiteralExpression, OutputClause, Rule, UnaryTests

_POLICIES: Final = {
    "UNIQUE": HitPolicy.UNIQUE,
    "ANY": HitPolicy.ANY,
    "PRIORITY": HitPolicy.PRIORITY,
    "FIRST": HitPolicy.FIRST,
    "RULE ORDER": HitPolicy.RULE_ORDER,
    "OUTPUT ORDER": HitPolicy.OUTPUT_ORDER,
    "COLLECT": HitPolicy.COLLECT,
}
_AGGREGATIONS: Final = {
    "SUM": HitPolicy.SUM,
    "MIN": HitPolicy.MIN,
    "MAX": HitPolicy.MAX,
    "COUNT": HitPolicy.COUNT,
}
_ORIENTATIONS: Final = ("Rule-as-Row", "Rule-as-Column", "CrossTable")
_OF_TABLE: Final = frozenset(("input", "output", "annotation", "rule"))
_OF_INPUT: Final = frozenset(("inputExpression", "inputValues"))
_OF_OUTPUT: Final = frozenset(("outputValues", "defaultOutputEntry"))
_OF_RULE: Final = frozenset(("inputEntry", "outputEntry", "annotationEntry"))


def load_table(elements: Elements, element: etree._Element, place: str, name: str) -> DecisionTable:
    """A decision table. What is wrong with it becomes problems."""
    elements.check_children(element, place, _OF_TABLE)
    _check_orientation(elements, element, place)
    inputs = tuple(_load_input(elements, each, place, at) for at, each in enumerate(elements.children(element, "input"), 1))
    outputs = tuple(
        _load_output(elements, each, place, at) for at, each in enumerate(elements.children(element, "output"), 1)
    )
    annotations = tuple(clean_name(each.get("name")) for each in elements.children(element, "annotation"))
    policy = _load_policy(elements, element, place)
    _check_outputs(elements, outputs, policy, place)
    rules = tuple(
        _load_rule(elements, each, place, at, (inputs, outputs, annotations))
        for at, each in enumerate(elements.children(element, "rule"), 1)
    )
    return DecisionTable(
        place=place,
        type_ref=clean_type(element.get("typeRef")),
        name=name,
        hit_policy=policy,
        inputs=inputs,
        outputs=outputs,
        rules=rules,
    )


def _check_orientation(elements: Elements, element: etree._Element, place: str) -> None:
    """DMN 8.3.1: how a table is preferably drawn. All are stored alike, as rules."""
    orientation = element.get("preferredOrientation", _ORIENTATIONS[0])
    if orientation not in _ORIENTATIONS:
        elements.problems.add(
            place,
            f"Expected an orientation that DMN knows, but it is {orientation!r}. Take one of {', '.join(_ORIENTATIONS)}.",
        )


def _load_policy(elements: Elements, element: etree._Element, place: str) -> HitPolicy:
    name = element.get("hitPolicy", "UNIQUE")
    policy = _POLICIES.get(name)
    if policy is None:
        elements.problems.add(
            place, f"Expected a hit policy that DMN knows, but it is {name!r}. Take one of {', '.join(_POLICIES)}."
        )
        return HitPolicy.UNIQUE
    aggregation = element.get("aggregation")
    if aggregation is None:
        return policy
    if aggregation not in _AGGREGATIONS:
        elements.problems.add(
            place,
            f"Expected an aggregation that DMN knows, but it is {aggregation!r}. Take {', '.join(_AGGREGATIONS)}.",
        )
    elif policy is HitPolicy.COLLECT:
        return _AGGREGATIONS[aggregation]
    else:
        elements.problems.add(
            place, f"Expected an aggregation only with the hit policy COLLECT, but that is {name!r}. Take one of them out."
        )
    return policy


def _load_input(elements: Elements, element: etree._Element, table: str, number: int) -> InputClause:
    place = describe(f"input {number}", element, table)
    elements.check_children(element, place, _OF_INPUT)
    inner = elements.child(element, "inputExpression")
    # A column that somebody has yet to fill in: its value is null, and a warning.
    expression = LiteralExpression(place=place, text="") if inner is None else load_literal(elements, inner, place)
    label = clean_name(element.get("label")) or clean_name(expression.text) or f"input {number}"
    return InputClause(
        label=label,
        expression=expression,
        variable=_find_input_variable(element),
        values=_load_values(elements, element, "inputValues", place),
    )


def _find_input_variable(element: etree._Element) -> str:
    """Camunda's name for the value of a column, in the cells of that column."""
    for key, value in element.attrib.items():
        name = etree.QName(str(key))
        if name.localname == "inputVariable" and "camunda" in (name.namespace or ""):
            return clean_name(str(value))
    return ""


def _load_output(elements: Elements, element: etree._Element, table: str, number: int) -> OutputClause:
    place = describe(f"output {number}", element, table)
    elements.check_children(element, place, _OF_OUTPUT)
    default = elements.child(element, "defaultOutputEntry")
    name = clean_name(element.get("name"))
    return OutputClause(
        name=name,
        label=clean_name(element.get("label")) or name,
        place=place,
        type_ref=clean_type(element.get("typeRef")),
        values=_load_values(elements, element, "outputValues", place),
        default=None if default is None else load_literal(elements, default, f"{place}, its default"),
    )


def _check_outputs(elements: Elements, outputs: tuple[OutputClause, ...], policy: HitPolicy, place: str) -> None:
    if not outputs:
        elements.problems.add(place, "Expected at least one output, but there is none. Add one.")
    if len(outputs) < 2:
        return
    seen: set[str] = set()
    for output in outputs:
        # DMN 8.2.7: each output component shall be named.
        if not output.name or output.name in seen:
            what = f"{output.name!r} stands twice" if output.name else "it has none"
            elements.problems.add(output.place, f"Expected a name of its own for each of several outputs, but {what}.")
        seen.add(output.name)
    if policy in _AGGREGATIONS.values():
        # DMN 8.2.11: compound outputs support Collect only without an operator.
        elements.problems.add(
            place,
            f"Expected one output with the hit policy {policy.value}, but there are {len(outputs)}. "
            "Take COLLECT without aggregation, or split the table.",
        )


def _load_values(elements: Elements, element: etree._Element, name: str, place: str) -> UnaryTests | None:
    values = elements.child(element, name)
    return None if values is None else load_tests(elements, values, f"{place}, its values")


def load_tests(elements: Elements, element: etree._Element, place: str) -> UnaryTests | None:
    """Unary tests; None if there is nothing to test."""
    elements.check_language(element, place)
    text = elements.text(element)
    return UnaryTests(text, place) if text and text != "-" else None


def load_literal(elements: Elements, element: etree._Element, place: str) -> LiteralExpression:
    """The FEEL text of an element. A text in another language is a problem of the model."""
    elements.check_language(element, place)
    return LiteralExpression(place=place, type_ref=clean_type(element.get("typeRef")), text=elements.text(element))


def _load_rule(
    elements: Elements,
    element: etree._Element,
    table: str,
    number: int,
    clauses: tuple[tuple[InputClause, ...], tuple[OutputClause, ...], tuple[str, ...]],
) -> Rule:
    place = describe(f"rule {number}", element, table)
    elements.check_children(element, place, _OF_RULE)
    cells = {name: elements.children(element, name) for name in _OF_RULE}
    inputs, outputs, annotations = clauses
    for name, expected in (("inputEntry", len(inputs)), ("outputEntry", len(outputs))):
        if len(cells[name]) != expected:
            elements.problems.add(
                place,
                f"Expected {count_noun(expected, 'cell')} {name!r}, one for each column, but there are {len(cells[name])}. "
                "Add what is missing or take out what is too many.",
            )
    return Rule(
        number=number,
        id=element.get("id", ""),
        inputs=tuple(
            UnaryTests(elements.text(cell), _describe_cell(elements, cell, place, "input", clause.label))
            for cell, clause in zip(cells["inputEntry"], inputs, strict=False)
        ),
        outputs=tuple(
            load_literal(elements, cell, f"{place}, output {clause.label!r}" if clause.label else f"{place}, its output")
            for cell, clause in zip(cells["outputEntry"], outputs, strict=False)
        ),
        annotations=_load_annotations(elements, element, cells["annotationEntry"], annotations),
    )


def _describe_cell(elements: Elements, cell: etree._Element, rule: str, kind: str, label: str) -> str:
    place = f"{rule}, {kind} {label!r}"
    elements.check_language(cell, place)
    return place


def _load_annotations(
    elements: Elements, rule: etree._Element, cells: list[etree._Element], names: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Annotations, and the rule's description, where modelers that know no annotations keep them."""
    found = [(names[at] if at < len(names) else "", elements.text(cell)) for at, cell in enumerate(cells)]
    description = elements.child(rule, "description")
    if description is not None:
        found.append(("description", elements.text(description)))
    return tuple((name, text) for name, text in found if text)
