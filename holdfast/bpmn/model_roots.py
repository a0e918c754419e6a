"""What all values of a BPMN model are made of: their root, elements with an id, and expressions."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The root of all values of a model."""


class Expression(Value, frozen=True, kw_only=True):
    """A text to be evaluated, or to be taken as it is."""

    text: str
    """FEEL without its leading `=`, or the literal text itself."""
    is_static: bool = False
    """Whether the text is the value: a string, as in Camunda 8 where no `=` leads."""
    source: str = ""
    """As the file has it, where that differs."""
    line: int = 0


class Element(Value, frozen=True, kw_only=True):
    """Whatever has an id in a file."""

    id: str
    name: str = ""
    line: int = 0
    documentation: str = ""
    properties: dict[str, str] = {}
    """What `zeebe:properties` or `camunda:properties` say."""
