"""Checks values by the JSON Schemas of `holdfast.core.check_schemas`, where the code is not that reads them.

Whatever a type takes, fits. What a schema cannot say, or this library cannot check, is found where the value is read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, ValidationError

from holdfast.core.linear_patterns import find_linear, find_weight

MOST_STEPS: Final = 20_000_000
"""A text is not checked by a pattern if its length times the states of the pattern is more: the loop would stand still."""
LEAST_CHECKED: Final = 2_000
"""Texts of so many characters are checked by every pattern."""


def make_validator(schema: Any) -> Draft202012Validator | None:
    """What checks values by a schema; None if it cannot be used, or has nothing to check."""
    if not schema:
        return None
    try:
        return Draft202012Validator(adapt_patterns(schema))
    except ValueError:
        return None


def find_misfit(validator: Draft202012Validator, value: Any) -> tuple[str, str] | None:
    """What does not fit, within a sentence, and where (empty: the whole value); None if a value fits."""
    try:
        validator.validate(value)
    except ValidationError as error:
        where = "".join(f"[{one!r}]" for one in error.instance_path)
        if list(error.schema_path)[-1:] == ["pattern"]:  # the message would show the adapted one
            return "a text does not match its pattern", where
        return error.message, where
    except ValueError:
        return None  # it cannot be checked
    return None


def adapt_patterns(schema: Any) -> Any:
    """A schema with its patterns, which are Python's, as the library understands them; without those that it cannot use."""
    if isinstance(schema, list):
        return [adapt_patterns(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    adapted: dict[str, Any] = {}
    for keyword, value in schema.items():
        match keyword:
            case "enum":
                adapted[keyword] = value
            case "properties" | "$defs":
                adapted[keyword] = {name: adapt_patterns(one) for name, one in value.items()}
            case "pattern":
                pattern = _find_usable(value)
                if pattern is not None:
                    adapted["if"] = {"maxLength": max(LEAST_CHECKED, MOST_STEPS // find_weight(value))}
                    adapted["then"] = {"pattern": pattern}
            case _:
                adapted[keyword] = adapt_patterns(value)
    return adapted


@lru_cache(maxsize=256)
def _find_usable(pattern: str) -> str | None:
    found = find_linear(pattern)
    if found is None:
        return None
    try:
        Draft202012Validator({"pattern": found})
    except ValueError:  # too large
        return None
    return found
