"""All built-in functions, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.feel.functions.booleans import BOOLEANS
from holdfast.feel.functions.contexts import CONTEXTS
from holdfast.feel.functions.conversions import CONVERSIONS
from holdfast.feel.functions.lists import LISTS
from holdfast.feel.functions.numbers import NUMERIC
from holdfast.feel.functions.ranges import RANGES
from holdfast.feel.functions.signatures import Form
from holdfast.feel.functions.strings import STRINGS
from holdfast.feel.functions.temporal import TEMPORAL


def _merge(*tables: Mapping[str, tuple[Form, ...]]) -> dict[str, tuple[Form, ...]]:
    merged: dict[str, tuple[Form, ...]] = {}
    for table in tables:
        for name, forms in table.items():
            merged[name] = merged.get(name, ()) + forms
    return merged


BUILT_INS: Final[Mapping[str, tuple[Form, ...]]] = _merge(
    CONVERSIONS,
    BOOLEANS,
    STRINGS,
    NUMERIC,
    LISTS,
    CONTEXTS,
    RANGES,
    TEMPORAL,
)
