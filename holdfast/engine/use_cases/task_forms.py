"""The form of a human task against the JSON Schema in its row: an early answer, for which no code of the workflow is needed.

What a schema cannot say is found by the turn that decides on the completion: it reads the form as the type of the task.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError

from holdfast.core.payloads import CONFIDENCE
from holdfast.errors import TaskFormMismatch
from holdfast.store.tasks import decode_body

if TYPE_CHECKING:
    from holdfast.core.payloads import Payload
    from holdfast.store.tasks import TaskRow

_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords of JSON Schema that hold a schema for each name."""
_WITH_VALUES: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
_EXACT: Final = frozenset({"not", "oneOf", "if", "contains"})
"""Keywords by which a schema refuses more if a part of it refuses less."""


def check_form(row: TaskRow, form: Payload) -> None:
    """Raises TaskFormMismatch if what was filled in does not fit the JSON Schema of the form."""
    body = decode_body(row)
    validator = _make_validator(bytes(body.form_schema))
    if validator is None:
        return
    value = msgspec.json.decode(form.data)
    try:
        validator.validate(value)
    except ValidationError as error:
        where = "".join(f"[{one!r}]" for one in error.instance_path)
        found = "a value of it does not fit" if CONFIDENCE else error.message
        raise TaskFormMismatch(
            f"Expected the form of task {row.task_id} ('{row.name}') to be {body.form}, but {found}"
            f"{f' at {where}' if where else ''}. Send what its form_schema describes; nothing was changed."
        ) from None
    except ValueError:
        return  # the schema itself cannot be used: the turn tells


@lru_cache(maxsize=256)
def _make_validator(schema: bytes) -> Draft202012Validator | None:
    """What checks a form by a schema, as far as that can be used; None if it cannot be used at all."""
    whole = msgspec.json.decode(schema)
    try:
        return Draft202012Validator(whole)
    except ValueError:  # a pattern of Python's, perhaps, such as `\Z`, which the library does not know
        pass
    try:
        return Draft202012Validator(leave_out_patterns(whole))
    except ValueError:
        return None


def leave_out_patterns(schema: Any) -> Any:
    """A schema without the patterns that cannot be used. It refuses nothing that the whole one lets pass."""
    if isinstance(schema, list):
        return [leave_out_patterns(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _WITH_VALUES:
            kept[keyword] = value
        elif keyword in _BY_NAME and isinstance(value, dict):
            kept[keyword] = {name: leave_out_patterns(one) for name, one in value.items()}
        elif keyword != "pattern" or _is_usable(value):
            kept[keyword] = leave_out_patterns(value)
    for keyword in _EXACT & kept.keys():
        if kept[keyword] != schema[keyword]:
            del kept[keyword]
    if not all(map(_is_usable, kept.get("patternProperties", ()))):
        for keyword in ("patternProperties", "additionalProperties", "unevaluatedProperties"):
            kept.pop(keyword, None)
    return kept


def _is_usable(pattern: Any) -> bool:
    try:
        Draft202012Validator({"pattern": pattern})
    except ValueError:
        return False
    return True
