"""Mappings and forms of Camunda 7: parameters (texts, lists, maps), `in` and `out` of call activities, form data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from holdfast.bpmn.model import Expression, Mapping
from holdfast.bpmn.reading.documents import Children, Document, local_name, text_of
from holdfast.bpmn.reading.expressions import read_juel
from holdfast.bpmn.reading.extensions import list_inner
from holdfast.bpmn.reading.juel import has_juel, write_name, write_text
from holdfast.safe_xml import line_of

_SCHEMA_TYPES: Final = {
    "string": {"type": "string"},
    "long": {"type": "integer"},
    "integer": {"type": "integer"},
    "double": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "enum": {"type": "string"},
}


@dataclass(frozen=True, slots=True)
class CallMappings:
    """What a call activity of Camunda 7 hands over and takes back."""

    inputs: list[Mapping]
    outputs: list[Mapping]
    hands_over_all: bool
    takes_back_all: bool


def read_parameters(document: Document, children: Children) -> tuple[list[Mapping], list[Mapping]]:
    """The input and output parameters of `camunda:inputOutput`."""
    boxes = children.get("inputOutput")
    return (
        [_read_parameter(document, element) for element in list_inner(boxes, "inputParameter")],
        [_read_parameter(document, element) for element in list_inner(boxes, "outputParameter")],
    )


def read_call_mappings(document: Document, children: Children) -> CallMappings:
    """`camunda:in` and `camunda:out`: what is not named there is neither handed over nor taken back."""
    inputs, hands_over_all = _read_handed(document, children.get("in", []))
    outputs, takes_back_all = _read_handed(document, children.get("out", []))
    return CallMappings(inputs, outputs, hands_over_all, takes_back_all)


def read_candidates(document: Document, element: etree._Element, text: str | None) -> Expression | None:
    """Names with commas between them, some of which may be expressions."""
    if text is None or not text.strip():
        return None
    parts = _split_list(text)
    if len(parts) == 1 or not has_juel(text):
        return read_juel(document, element, text.strip())
    written = ", ".join(_write(read_juel(document, element, part)) for part in parts)
    return Expression(text=f"[{written}]", source=text, line=line_of(element))


def read_form_data(children: Children) -> str:
    """The fields of `camunda:formData` as a JSON Schema; empty if there are none."""
    fields = list_inner(children.get("formData"), "formField")
    if not fields:
        return ""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for element in fields:
        name = element.get("id", "")
        schema: dict[str, Any] = dict(_SCHEMA_TYPES.get(element.get("type", ""), {}))
        if element.get("label"):
            schema["title"] = element.get("label")
        if element.get("defaultValue") is not None and not has_juel(element.get("defaultValue", "")):
            schema["default"] = element.get("defaultValue")
        values = list_inner([element], "value")
        if values:
            schema["enum"] = [value.get("id", "") for value in values]
        properties[name] = schema
        if any(one.get("name") == "required" for one in list_inner(list_inner([element], "validation"), "constraint")):
            required.append(name)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    return json.dumps(made, ensure_ascii=False)


def make_literal(expression: Expression) -> Expression:
    """As FEEL, where it was a text to be taken as it is."""
    if not expression.is_static:
        return expression
    return Expression(text=write_text(expression.text), source=expression.text, line=expression.line)


def _read_parameter(document: Document, element: etree._Element) -> Mapping:
    name = element.get("name", "").strip()
    if not name:
        document.report(
            element,
            "bad-mapping",
            f"Expected a name for the {local_name(str(element.tag))}, but there is none.",
            "Name it, or take it out.",
        )
    return Mapping(source=_read_value(document, element), target=name, line=line_of(element))


def _read_value(document: Document, element: etree._Element) -> Expression:
    """The value of a parameter, an entry or an item."""
    for child in element:
        if local_name(str(child.tag)) in ("list", "map", "script"):
            return _read_item(document, child)
    text = text_of(element)
    return read_juel(document, element, text) if text else Expression(text="null", line=line_of(element))


def _read_item(document: Document, element: etree._Element) -> Expression:
    """A list, a map, a script or an item that is a text."""
    kind = local_name(str(element.tag))
    line = line_of(element)
    if kind == "list":
        items = ", ".join(_write(_read_item(document, item)) for item in element)
        return Expression(text=f"[{items}]", line=line)
    if kind == "map":
        entries = ", ".join(
            f"{write_text(entry.get('key', ''))}: {_write(_read_value(document, entry))}" for entry in element
        )
        return Expression(text=f"{{{entries}}}", line=line)
    if kind == "script":
        _refuse_script(document, element)
        return Expression(text="null", line=line)
    return _read_value(document, element)


def _refuse_script(document: Document, element: etree._Element) -> None:
    document.report(
        element,
        "script-in-mapping",
        f"Expected a value or an expression in the mapping, but there is a script in {element.get('scriptFormat', '')!r}.",
        "Write it as a FEEL expression, or let an activity compute it.",
    )


def _read_handed(document: Document, elements: list[etree._Element]) -> tuple[list[Mapping], bool]:
    mappings: list[Mapping] = []
    has_all = False
    for element in elements:
        if element.get("variables") == "all":
            has_all = True
            continue
        if element.get("businessKey") is not None:
            document.notice(
                element,
                "no-effect",
                "Expected variables to be handed over, but there is a business key, which processes do not have here.",
                "Hand it over as a variable.",
            )
            continue
        source, expression = element.get("source", "").strip(), element.get("sourceExpression")
        target = element.get("target", "").strip() or source
        if not target or (not source and not expression):
            document.report(
                element,
                "bad-mapping",
                f"Expected a source and a target in camunda:{local_name(str(element.tag))}, but one is missing.",
                "Name both, or write variables='all'.",
            )
            continue
        value = (
            make_literal(read_juel(document, element, expression))
            if expression
            else Expression(text=write_name(source), source=source, line=line_of(element))
        )
        mappings.append(Mapping(source=value, target=target, line=line_of(element)))
    return mappings, has_all


def _split_list(text: str) -> list[str]:
    """At the commas outside of expressions."""
    parts, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


def _write(expression: Expression) -> str:
    return make_literal(expression).text
