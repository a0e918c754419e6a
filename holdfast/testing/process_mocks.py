"""What stands in for a process or a decision while a case runs: small models that are deployed in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

_BPMN: Final = "http://www.omg.org/spec/BPMN/20100524/MODEL"
_DMN: Final = "https://www.omg.org/spec/DMN/20191111/MODEL/"


def make_process(process_id: str, variables: Mapping[str, Any]) -> bytes:
    """A process that completes at once with these variables."""
    script = escape(write_feel(dict(variables)))
    return (
        f'<definitions xmlns="{_BPMN}" id="mock" targetNamespace="urn:holdfast:mock">'
        f'<process id={quoteattr(process_id)} isExecutable="true">'
        '<startEvent id="start"/><sequenceFlow id="flow1" sourceRef="start" targetRef="set"/>'
        f'<scriptTask id="set" name="Mock"><script>{script}</script></scriptTask>'
        '<sequenceFlow id="flow2" sourceRef="set" targetRef="end"/><endEvent id="end"/>'
        "</process></definitions>"
    ).encode()


def make_decision(decision_id: str, output: Any) -> bytes:
    """A decision model with one decision, which is always this."""
    return (
        f'<definitions xmlns="{_DMN}" id="mock" name="mock" namespace="urn:holdfast:mock">'
        f"<decision id={quoteattr(decision_id)} name={quoteattr(decision_id)}>"
        f"<variable name={quoteattr(decision_id)}/>"
        f'<literalExpression id="always"><text>{escape(write_feel(output))}</text></literalExpression>'
        "</decision></definitions>"
    ).encode()


def write_feel(value: Any) -> str:
    """A JSON value as FEEL writes it: JSON, but for numbers with an exponent."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_quote(str(key))}: {write_feel(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(write_feel, value)) + "]"
        case float():
            return f"number({_quote(repr(value))})" if "e" in repr(value) else repr(value)
        case str():
            return _quote(value)
        case _:
            return msgspec.json.encode(value).decode()


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()
