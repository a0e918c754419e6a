"""From XML to a model: types, input data, decisions, business knowledge models and decision services."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from lxml import etree

from holdfast.dmn.elements import Elements, clean_name, clean_type, describe
from holdfast.dmn.loading_boxes import LOADERS, find_expression, load_function, load_variable
from holdfast.dmn.loading_tables import load_tests
from holdfast.dmn.model import (
    BusinessKnowledgeModel,
    Decision,
    DecisionService,
    Definitions,
    Element,
    FunctionDefinition,
    InformationItem,
    InputData,
    ItemDefinition,
)
from holdfast.dmn.problems import Problems
from holdfast.dmn.reading import read_xml
from holdfast.dmn.requirements import check_requirements

Some = TypeVar("Some", bound=Element)

_ABOUT_DRAWING: Final = frozenset(
    [
        "knowledgeSource",
        "elementCollection",
        "performanceIndicator",
        "organizationUnit",
        "textAnnotation",
        "association",
        "group",
    ]
)
"""Elements that say nothing about values."""
_OF_DEFINITIONS: Final = _ABOUT_DRAWING | frozenset(
    ["import", "itemDefinition", "decision", "inputData", "businessKnowledgeModel", "decisionService"]
)
_OF_DECISION: Final = LOADERS.keys() | frozenset(
    [
        "question",
        "allowedAnswers",
        "variable",
        "informationRequirement",
        "knowledgeRequirement",
        "authorityRequirement",
        "supportedObjective",
        "impactedPerformanceIndicator",
        "decisionMaker",
        "decisionOwner",
        "usingProcess",
        "usingTask",
    ]
)
_OF_KNOWLEDGE: Final = frozenset(["variable", "encapsulatedLogic", "knowledgeRequirement", "authorityRequirement"])
_OF_SERVICE: Final = frozenset(["variable", "outputDecision", "encapsulatedDecision", "inputDecision", "inputData"])
_OF_TYPE: Final = frozenset(["typeRef", "allowedValues", "typeConstraint", "itemComponent", "functionItem"])
_MOST_NESTED_TYPES: Final = 30


def load_definitions(xml: str | bytes, problems: Problems) -> Definitions:
    """The model that a DMN file holds; with problems, it is not whole. Raises DmnError if the file is no DMN at all."""
    elements = Elements(read_xml(xml), problems)
    root = elements.root
    elements.check_children(root, "definitions", _OF_DEFINITIONS)
    for child in elements.children(root, "import"):
        problems.add(
            describe("import", child),
            f"Expected a model that stands alone, but it imports {child.get('namespace', '')!r}. "
            "Imports are not supported: copy what is needed into the model.",
        )
    definitions = Definitions(
        id=root.get("id", ""),
        name=clean_name(root.get("name")),
        namespace=root.get("namespace", ""),
        version=elements.version,
        decisions=_load_all(elements, "decision", _load_decision),
        inputs=_load_all(elements, "inputData", _load_input),
        knowledge=_load_all(elements, "businessKnowledgeModel", _load_knowledge),
        services=_load_all(elements, "decisionService", _load_service),
        types=_load_types(elements),
    )
    _check_names(definitions, problems)
    check_requirements(definitions, problems)
    return definitions


def _load_all(elements: Elements, kind: str, load: Callable[[Elements, etree._Element], Some]) -> dict[str, Some]:
    found: dict[str, Some] = {}
    for child in elements.children(elements.root, kind):
        element = load(elements, child)
        if not element.name:
            elements.problems.add(element.place, "Expected a name, but there is none. Name it.")
        if element.id in found:
            _refuse_twice(elements.problems, element, found[element.id])
        found[element.id] = element
    return found


def _refuse_twice(problems: Problems, one: Element, other: Element) -> None:
    problems.add(one.place, f"Expected an id of its own, but {other.place} has {one.id!r} too. Change one of them.")


def _check_names(definitions: Definitions, problems: Problems) -> None:
    """All elements that requirements can name have ids and names of their own, or nobody could tell which one is meant."""
    ids: dict[str, Element] = {}
    names: dict[str, Element] = {}
    for elements in (definitions.decisions, definitions.inputs, definitions.knowledge, definitions.services):
        for element in elements.values():
            if element.id in ids:
                _refuse_twice(problems, element, ids[element.id])
            ids[element.id] = element
            if element.name and element.name in names:
                problems.add(
                    element.place,
                    f"Expected a name of its own, but {names[element.name].place} is called the same. Rename one of them.",
                )
            names[element.name] = element


def _get_id(element: etree._Element) -> str:
    """The id; else the name, which nothing but people can refer to."""
    return element.get("id") or clean_name(element.get("name")) or f"line {element.sourceline}"


def _load_own_variable(elements: Elements, element: etree._Element, place: str) -> InformationItem:
    """DMN 6.3.7: the variable has the element's name. Where a modeler left either out, the other one serves."""
    name = clean_name(element.get("name"))
    inner = elements.child(element, "variable")
    if inner is None:
        return InformationItem(name)
    if not inner.get("name"):
        return InformationItem(name, clean_type(inner.get("typeRef")))
    return load_variable(elements, inner, place)


def _load_input(elements: Elements, element: etree._Element) -> InputData:
    place = describe("input data", element)
    elements.check_children(element, place, frozenset(("variable",)))
    return InputData(
        id=_get_id(element),
        name=clean_name(element.get("name")),
        place=place,
        variable=_load_own_variable(elements, element, place),
    )


def _load_decision(elements: Elements, element: etree._Element) -> Decision:
    place = describe("decision", element)
    name = clean_name(element.get("name"))
    elements.check_children(element, place, _OF_DECISION)
    information = elements.children(element, "informationRequirement")
    return Decision(
        id=_get_id(element),
        name=name,
        place=place,
        variable=_load_own_variable(elements, element, place),
        expression=find_expression(elements, element, place, name),
        required_decisions=_load_references(elements, information, "requiredDecision", place),
        required_inputs=_load_references(elements, information, "requiredInput", place),
        required_knowledge=_load_knowledge_references(elements, element, place),
    )


def _load_knowledge(elements: Elements, element: etree._Element) -> BusinessKnowledgeModel:
    place = describe("business knowledge model", element)
    name = clean_name(element.get("name"))
    elements.check_children(element, place, _OF_KNOWLEDGE)
    logic = elements.child(element, "encapsulatedLogic")
    if logic is None:
        elements.problems.add(place, "Expected an encapsulatedLogic, but there is none. Add one.")
    return BusinessKnowledgeModel(
        id=_get_id(element),
        name=name,
        place=place,
        variable=_load_own_variable(elements, element, place),
        logic=FunctionDefinition(place=place, parameters=(), body=None)
        if logic is None
        else load_function(elements, logic, place, name),
        required_knowledge=_load_knowledge_references(elements, element, place),
    )


def _load_service(elements: Elements, element: etree._Element) -> DecisionService:
    place = describe("decision service", element)
    elements.check_children(element, place, _OF_SERVICE)

    def load(kind: str) -> tuple[str, ...]:
        return _load_references(elements, [element], kind, place)

    outputs = load("outputDecision")
    if not outputs:
        elements.problems.add(place, "Expected at least one outputDecision, but there is none. Add what it decides.")
    return DecisionService(
        id=_get_id(element),
        name=clean_name(element.get("name")),
        place=place,
        variable=_load_own_variable(elements, element, place),
        output_decisions=outputs,
        encapsulated_decisions=load("encapsulatedDecision"),
        input_decisions=load("inputDecision"),
        input_data=load("inputData"),
    )


def _load_knowledge_references(elements: Elements, element: etree._Element, place: str) -> tuple[str, ...]:
    requirements = elements.children(element, "knowledgeRequirement")
    return _load_references(elements, requirements, "requiredKnowledge", place)


def _load_references(elements: Elements, parents: Iterable[etree._Element], kind: str, place: str) -> tuple[str, ...]:
    """The ids in the hrefs of children of that kind: "#id", or the model's own namespace before it (DMN 13.3.2)."""
    found: dict[str, None] = {}
    for child in (child for parent in parents for child in elements.children(parent, kind)):
        namespace, mark, id_ = child.get("href", "").strip().rpartition("#")
        if not mark or not id_:
            elements.problems.add(
                place,
                f"Expected an href like '#id' in {kind!r}, but it is {child.get('href', '')!r}. Give an id.",
            )
        elif namespace and namespace != elements.root.get("namespace"):
            elements.problems.add(
                place,
                f"Expected {kind!r} in this model, but {child.get('href')!r} is in another. Copy it here.",
            )
        else:
            found[id_] = None
    return tuple(found)


# --- types ---


def _load_types(elements: Elements) -> dict[str, ItemDefinition]:
    found: dict[str, ItemDefinition] = {}
    for child in elements.children(elements.root, "itemDefinition"):
        definition = _load_type(elements, child, describe("item definition", child), 1)
        if definition.name in found:
            elements.problems.add(
                definition.place,
                f"Expected a name of its own, but {found[definition.name].place} has it too. Rename one.",
            )
        found[definition.name] = definition
    return found


def _load_type(elements: Elements, element: etree._Element, place: str, depth: int) -> ItemDefinition:
    elements.check_children(element, place, _OF_TYPE)
    name = clean_name(element.get("name"))
    if not name:
        elements.problems.add(place, "Expected a name, but there is none. Name it.")
    inner = elements.children(element, "itemComponent")
    if depth > _MOST_NESTED_TYPES:
        elements.problems.add(
            place, f"Expected structures at most {_MOST_NESTED_TYPES} deep, but they are deeper. Split it."
        )
        inner = []
    reference = elements.child(element, "typeRef")
    tests = {kind: elements.child(element, kind) for kind in ("allowedValues", "typeConstraint")}
    allowed, constraint = (
        None if child is None else load_tests(elements, child, f"{place}, its {kind}") for kind, child in tests.items()
    )
    return ItemDefinition(
        name=name,
        place=place,
        # In DMN 1.1 an element, in some exports an attribute.
        type_ref=clean_type("".join(map(str, reference.itertext())) if reference is not None else element.get("typeRef")),
        is_collection=element.get("isCollection", "false").strip() in ("true", "1"),
        allowed_values=allowed,
        type_constraint=constraint,
        components=tuple(_load_type(elements, child, describe("component", child, place), depth + 1) for child in inner),
        is_function=elements.child(element, "functionItem") is not None,
    )
