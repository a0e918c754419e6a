"""The state of an execution as its code sets it: whole, or key by key."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, NoReturn

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


def read_state(present: Payload | None) -> Any:
    """The present state as plain JSON values that cannot be changed; None if there is none."""
    return None if present is None else _freeze(payloads.decode(present, Any, WHAT))


def _freeze(value: Any) -> Any:
    if type(value) is dict:
        return StateDict({key: _freeze(one) for key, one in value.items()})
    return StateList(map(_freeze, value)) if type(value) is list else value


def _refuse(self: object, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise InvalidArguments(
        "Expected ctx.state only to be read, but it was changed in place, which would have no effect. Write "
        "ctx.set_state(step='paid') to set keys, or change a copy (copy.deepcopy(ctx.state)) and pass it to ctx.set_state."
    )


class StateDict(dict[str, Any]):
    """A dict of `ctx.state`, for reading. Copies of it, `dict(…)` and those of `copy`, are plain dicts."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)


class StateList(list[Any]):
    """A list within `ctx.state`, for reading. Copies of it are plain lists."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy(list(self), memo)
