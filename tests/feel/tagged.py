"""Values written as JSON with tags: what JSON lacks is an object with one key that names the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from holdfast.feel.temporal.parsing import parse_date, parse_date_time, parse_duration, parse_time
from holdfast.feel.values import Value

KINDS: Final[Mapping[str, Callable[[Any], Value]]] = {
    "__number__": Decimal,
    "__date__": parse_date,
    "__time__": parse_time,
    "__dateTime__": parse_date_time,
    "__duration__": parse_duration,
    "__context__": lambda entries: {name: read_tagged(entry) for name, entry in entries.items()},
}


def read_tagged(data: Any) -> Value:
    """The value that was written. Raises ValueError if the text of a date or its like is none."""
    if isinstance(data, list):
        return [read_tagged(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    value = KINDS[tag](content)
    if value is None:
        raise ValueError(f"Expected {content!r} to be a value of kind {tag}, but it cannot be read.")
    return value
