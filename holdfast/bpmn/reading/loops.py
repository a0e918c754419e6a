"""Loop characteristics of activities: multi-instance and standard loops."""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.bpmn.model import AnyEventDefinition, ComplexBehavior, Expression, Loop, StandardLoop
from holdfast.bpmn.reading import camunda7, zeebe
from holdfast.bpmn.reading.documents import Children, Document, first, group_children, text_of
from holdfast.bpmn.reading.events import find_definition, read_definitions
from holdfast.bpmn.reading.expressions import read_condition, read_juel
from holdfast.bpmn.reading.extensions import Extensions, read_extensions
from holdfast.bpmn.reading.juel import has_juel, write_name
from holdfast.safe_xml import line_of

_LOOPS: Final = ("multiInstanceLoopCharacteristics", "standardLoopCharacteristics")


def read_loop(document: Document, children: Children) -> Loop | StandardLoop | None:
    """How an activity is repeated; None if it is not."""
    element = first(children, "multiInstanceLoopCharacteristics")
    if sum(len(children.get(name, ())) for name in _LOOPS) > 1:
        document.report(
            children[next(name for name in _LOOPS if name in children)][-1],
            "bad-loop",
            "Expected an activity to be repeated in one way, but it has several loop characteristics.",
            "Leave one of them.",
        )
    if element is not None:
        return _read_multi_instance(document, element)
    element = first(children, "standardLoopCharacteristics")
    if element is None:
        return None
    return StandardLoop(
        condition=read_condition(document, first(group_children(element), "loopCondition")),
        tests_before=document.is_true(element, "testBefore"),
        maximum=document.optional_count(element, "loopMaximum"),
        line=line_of(element),
    )


def _read_multi_instance(document: Document, element: etree._Element) -> Loop:
    children = group_children(element)
    extensions = read_extensions(element, children)
    zeebe.note_unknown(document, extensions.zeebe)
    camunda7.note_extensions(document, element, extensions)
    item = _name_item(first(children, "outputDataItem"))
    return Loop(
        is_sequential=document.is_true(element, "isSequential"),
        cardinality=read_condition(document, first(children, "loopCardinality")),
        input_collection=_read_collection(document, element, children, extensions),
        input_element=(
            zeebe.read_text(extensions.zeebe, "loopCharacteristics", "inputElement")
            or extensions.attributes.get("elementVariable", "").strip()
            or _name_item(first(children, "inputDataItem"))
        ),
        output_collection=(
            zeebe.read_text(extensions.zeebe, "loopCharacteristics", "outputCollection")
            or _name_data(document, text_of(first(children, "loopDataOutputRef")))
        ),
        output_element=(
            zeebe.read_attribute(extensions.zeebe, "loopCharacteristics", "outputElement")
            or (Expression(text=write_name(item), source=item, line=line_of(element)) if item else None)
        ),
        completion_condition=read_condition(document, first(children, "completionCondition")),
        behavior=element.get("behavior", "").strip(),
        one_event=_find_event(document, element, "oneBehaviorEventRef"),
        none_event=_find_event(document, element, "noneBehaviorEventRef"),
        complex_behaviors=tuple(_read_behavior(document, child) for child in children.get("complexBehaviorDefinition", ())),
        line=line_of(element),
    )


def _read_collection(
    document: Document, element: etree._Element, children: Children, extensions: Extensions
) -> Expression | None:
    found = zeebe.read_attribute(extensions.zeebe, "loopCharacteristics", "inputCollection")
    if found is not None:
        return found
    text = extensions.attributes.get("collection", "").strip()
    if text and has_juel(text):
        return read_juel(document, element, text)
    reference = first(children, "loopDataInputRef")
    if not text and reference is not None:
        text = text_of(reference)
        if has_juel(text):
            return read_juel(document, reference, text)
        text = _name_data(document, text)
    return Expression(text=write_name(text), source=text, line=line_of(element)) if text else None


def _name_data(document: Document, reference: str) -> str:
    """The variable that a reference to data means: the name of the data with that id, or what is written itself."""
    element = document.ids.get(document.reference(reference))
    if element is None:
        return reference
    return element.get("name", "").strip() or document.reference(reference)


def _name_item(element: etree._Element | None) -> str:
    return "" if element is None else element.get("name", "").strip() or element.get("id", "").strip()


def _find_event(document: Document, element: etree._Element, attribute: str) -> AnyEventDefinition | None:
    reference = element.get(attribute)
    return None if reference is None else find_definition(document, element, reference)


def _read_behavior(document: Document, element: etree._Element) -> ComplexBehavior:
    children = group_children(element)
    event = first(children, "event")
    definitions = () if event is None else read_definitions(document, event)
    return ComplexBehavior(
        condition=read_condition(document, first(children, "condition")), event=definitions[0] if definitions else None
    )
