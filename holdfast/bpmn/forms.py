"""Forms of user tasks as JSON Schemas: what a person has to fill in, checked when the task is completed."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_KINDS: Final = {
    "number": "number",
    "checkbox": "boolean",
    "textfield": "string",
    "textarea": "string",
    "radio": None,
    "select": None,
    "checklist": "array",
    "taglist": "array",
    "datetime": "string",
}
"""Components of Camunda's forms that give a value, and its type."""
ANY_OBJECT: Final = b'{"type":"object"}'


def make_schema(form: bytes) -> bytes | None:
    """The JSON Schema of a form: the form itself, if it is one, else what its components ask for. None: it is no form."""
    try:
        content = msgspec.json.decode(form)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    if "components" not in content:
        return form
    properties: dict[str, Any] = {}
    required: list[str] = []
    _collect(content["components"], properties, required)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return msgspec.json.encode(schema)


def _collect(components: Any, properties: dict[str, Any], required: list[str]) -> None:
    for one in components if isinstance(components, list) else ():
        if not isinstance(one, dict):
            continue
        key, kind = one.get("key"), one.get("type")
        if isinstance(key, str) and key and kind in _KINDS and "." not in key:
            found: dict[str, Any] = {}
            rules = one.get("validate")
            rules = rules if isinstance(rules, dict) else {}
            if _KINDS[kind] is not None:
                found["type"] = _KINDS[kind] if rules.get("required") else [_KINDS[kind], "null"]
            if isinstance(one.get("label"), str):
                found["title"] = one["label"]
            properties[key] = found
            if rules.get("required"):
                required.append(key)
        _collect(one.get("components"), properties, required)


def find_missing(schema: bytes, given: dict[str, Any]) -> list[str]:
    """The names that a schema requires and that are not given, or null."""
    try:
        content = msgspec.json.decode(schema)
    except (msgspec.MsgspecError, RecursionError):
        return []
    required = content.get("required") if isinstance(content, dict) else None
    names = required if isinstance(required, list) else []
    return [name for name in names if isinstance(name, str) and given.get(name) is None]
