"""From XML to a model: types, input data, decisions, business knowledge models and decision services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from lxml import etree

from holdfast.dmn.elements import Elements, clean_name, clean_type, describe
from holdfast.dmn.imports import ModelFile, read_files
from holdfast.dmn.loading_boxes import LOADERS, find_expression, load_function, load_variable
from holdfast.dmn.loading_tables import load_tests
from holdfast.dmn.model import (
    BusinessKnowledgeModel,
    Decision,
    DecisionService,
    Definitions,
    Element,
    InformationItem,
    InputData,
    ItemDefinition,
)
from holdfast.dmn.problems import Problems, refuse
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
MOST_DECISIONS: Final = 2_000
MOST_RULES: Final = 20_000
"""Of all decision tables together."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large the files that are loaded together may be."""

    decisions: int = MOST_DECISIONS
    rules: int = MOST_RULES


def load_models(sources: Sequence[str | bytes], problems: Problems, limits: Limits) -> list[Definitions]:
    """The model of the first file, then those that it imports. With problems, they are not whole.

    Raises DmnError if a file is no DMN at all, or has more decisions or rules than it may have.
    """
    files = read_files(sources, problems)
    _check_size(files, limits)
    models = []
    for file in files:
        with problems.inside_model("" if file.is_main else file.name):
            models.append(_load_definitions(file, problems))
    check_requirements(models, problems)
    return models


def _check_size(files: Iterable[ModelFile], limits: Limits) -> None:
    decisions = rules = 0
    for file in files:
        decisions += len(file.children(file.root, "decision", "decisionService", "businessKnowledgeModel"))
        rules += file.count_rules()
    if decisions > limits.decisions:
        raise refuse(
            f"Expected at most {limits.decisions:,} decisions, services and knowledge models, but there are {decisions:,}. "
            "Split the model, or allow more by max_decisions=…."
        )
    if rules > limits.rules:
        raise refuse(
            f"Expected at most {limits.rules:,} rules in all tables, but there are {rules:,}. Split the model, or allow "
            "more by max_rules=…."
        )


def _load_definitions(file: ModelFile, problems: Problems) -> Definitions:
    root = file.root
    file.check_children(root, "definitions", _OF_DEFINITIONS)
    definitions = Definitions(
        id=root.get("id", ""),
        name=file.name,
        namespace=file.namespace,
        version=file.version,
        decisions=_load_all(file, "decision", _load_decision),
        inputs=_load_all(file, "inputData", _load_input),
        knowledge=_load_all(file, "businessKnowledgeModel", _load_knowledge),
        services=_load_all(file, "decisionService", _load_service),
        types=_load_types(file),
        imports=file.imports,
    )
    _check_names(definitions, problems)
    return definitions


def _load_all(file: ModelFile, kind: str, load: Callable[[ModelFile, etree._Element], Some]) -> dict[str, Some]:
    found: dict[str, Some] = {}
    for child in file.children(file.root, kind):
        element = load(file, child)
        if not element.name:
            file.problems.add(element.place, "Expected a name, but there is none. Name it.")
        if element.id in found:
            _refuse_twice(file.problems, element, found[element.id])
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
    for one in definitions.imports:
        if one.name in names:
            problems.add(
                one.place, f"Expected a name of its own, but {names[one.name].place} is called the same. Rename one of them."
            )


def _load_own_variable(elements: Elements, element: etree._Element, place: str) -> InformationItem:
    """DMN 6.3.7: the variable has the element's name. Where a modeler left either out, the other one serves."""
    name = clean_name(element.get("name"))
    inner = elements.child(element, "variable")
    if inner is None:
        return InformationItem(name)
    if not inner.get("name"):
        return InformationItem(name, clean_type(inner.get("typeRef")))
    return load_variable(elements, inner, place)


def _load_input(file: ModelFile, element: etree._Element) -> InputData:
    place = describe("input data", element)
    file.check_children(element, place, frozenset(("variable",)))
    return InputData(
        id=file.find_key(element),
        name=clean_name(element.get("name")),
        place=place,
        variable=_load_own_variable(file, element, place),
    )


def _load_decision(file: ModelFile, element: etree._Element) -> Decision:
    place = describe("decision", element)
    name = clean_name(element.get("name"))
    id_ = file.find_key(element)
    information = file.children(element, "informationRequirement")
    with file.problems.inside(id_):
        file.check_children(element, place, _OF_DECISION)
        variable = _load_own_variable(file, element, place)
        expression = find_expression(file, element, place, name)
    return Decision(
        id=id_,
        name=name,
        place=place,
        variable=variable,
        expression=expression,
        required_decisions=_load_references(file, information, "requiredDecision", place),
        required_inputs=_load_references(file, information, "requiredInput", place),
        required_knowledge=_load_knowledge_references(file, element, place),
    )


def _load_knowledge(file: ModelFile, element: etree._Element) -> BusinessKnowledgeModel:
    place = describe("business knowledge model", element)
    name = clean_name(element.get("name"))
    id_ = file.find_key(element)
    with file.problems.inside(id_):
        file.check_children(element, place, _OF_KNOWLEDGE)
        variable = _load_own_variable(file, element, place)
        logic = file.child(element, "encapsulatedLogic")
        function = None if logic is None else load_function(file, logic, place, name)
    return BusinessKnowledgeModel(
        id=id_,
        name=name,
        place=place,
        variable=variable,
        logic=function,
        required_knowledge=_load_knowledge_references(file, element, place),
    )


def _load_service(file: ModelFile, element: etree._Element) -> DecisionService:
    place = describe("decision service", element)
    file.check_children(element, place, _OF_SERVICE)

    def load(kind: str) -> tuple[str, ...]:
        return _load_references(file, [element], kind, place)

    return DecisionService(
        id=file.find_key(element),
        name=clean_name(element.get("name")),
        place=place,
        variable=_load_own_variable(file, element, place),
        output_decisions=load("outputDecision"),
        encapsulated_decisions=load("encapsulatedDecision"),
        input_decisions=load("inputDecision"),
        input_data=load("inputData"),
    )


def _load_knowledge_references(file: ModelFile, element: etree._Element, place: str) -> tuple[str, ...]:
    requirements = file.children(element, "knowledgeRequirement")
    return _load_references(file, requirements, "requiredKnowledge", place)


def _load_references(file: ModelFile, parents: Iterable[etree._Element], kind: str, place: str) -> tuple[str, ...]:
    """What the hrefs of children of that kind lead to: "#id", or the namespace of a model before it (DMN 13.3.2)."""
    found: dict[str, None] = {}
    for child in (child for parent in parents for child in file.children(parent, kind)):
        namespace, mark, id_ = child.get("href", "").strip().rpartition("#")
        if not mark or not id_:
            file.problems.add(
                place,
                f"Expected an href like '#id' in {kind!r}, but it is {child.get('href', '')!r}. Give an id.",
            )
            continue
        key = file.resolve(namespace, id_, place)
        if key is not None:
            found[key] = None
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
