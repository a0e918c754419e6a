"""The state of an execution as its code sets it: whole, or key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.code.values import Values
from holdfast.core import payloads
from holdfast.core.payloads import Payload
from holdfast.errors import InvalidArguments

WHAT: Final = "the state of the workflow"


class _Unset:
    """Stands for a value that was not given: None is one."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Final = _Unset()


def make_state(values: Values, present: Payload | None, value: Any, keys: Mapping[str, Any]) -> Payload:
    """The new state: `value` in the place of the present one, and then the keys merged into it. Raises InvalidArguments."""
    if value is not UNSET:
        encoded = values.encode(value, WHAT)
        if not keys:
            return encoded
        present = encoded
    elif not keys:
        raise InvalidArguments(
            "Expected ctx.set_state to get a value or keys, but it got neither. Pass for instance step='paid'."
        )
    state = None if present is None else payloads.decode(present, Any, WHAT)
    if state is None:
        state = {}
    if not isinstance(state, dict):
        raise InvalidArguments(
            f"Expected to merge {', '.join(keys)} into a state that is a mapping, but it is {type(state).__name__}. "
            "Set the whole state to a mapping first: ctx.set_state({...})."
        )
    given = payloads.decode(values.encode(dict(keys), WHAT), Any, WHAT)
    merged = {key: one for key, one in {**state, **given}.items() if keys.get(key, one) is not None or key not in keys}
    return values.encode(merged, WHAT)
