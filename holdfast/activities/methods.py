"""The activities of an object: how a pool, a client or a setting reaches the functions that need it."""

from __future__ import annotations

import inspect
from typing import Any

from holdfast.activities.definitions import Activity, Binding
from holdfast.errors import InvalidDefinition


def collect(owner: object) -> list[Activity[..., Any]]:
    """The methods of an object that are decorated with @activity or @transaction, bound to it, in the order of definition.

    `Engine(…, activities=[*collect(Payments(pool))])`. Raises InvalidDefinition if there are none, or if a class overrides
    one without decorating it.
    """
    is_class = isinstance(owner, type)
    cls: type[Any] = owner if isinstance(owner, type) else type(owner)
    shown = f"class {cls.__name__}" if is_class else f"an object of {cls.__name__}"
    found: dict[str, Activity[..., Any]] = {}
    for name in dict.fromkeys(name for one in reversed(cls.__mro__) for name in vars(one)):
        if _is_activity(cls, name):
            found[name] = _read(owner, cls, name)
    own = {} if is_class else getattr(owner, "__dict__", {})
    found.update((name, one) for name, one in own.items() if isinstance(one, Activity))
    if not found:
        raise InvalidDefinition(
            f"Expected collect to find methods decorated with @activity, but {shown} has none. Decorate them."
        )
    return list(found.values())


def _is_activity(cls: type[Any], name: str) -> bool:
    """Whether a class, or one that it inherits from, has an activity of that name."""
    return any(_find_activity(vars(one).get(name)) is not None for one in cls.__mro__)


def _find_activity(member: Any) -> Activity[..., Any] | None:
    inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    return inner if isinstance(inner, Activity) else None


def _read(owner: object, cls: type[Any], name: str) -> Activity[..., Any]:
    member = inspect.getattr_static(cls, name)
    activity = _find_activity(member)
    if activity is None:
        raise InvalidDefinition(
            f"Expected {cls.__name__}.{name} to be an activity, as in the class that it inherits from, but it is not "
            "decorated. Add @activity."
        )
    if isinstance(member, classmethod):
        raise InvalidDefinition(
            f"Expected @activity to stand above @classmethod, but at {cls.__name__}.{name} it stands below. Swap them."
        )
    if isinstance(member, staticmethod):
        return activity
    if activity.binding is Binding.OBJECT and owner is cls:
        raise InvalidDefinition(
            f"Expected collect to get an object of {cls.__name__}, whose method '{name}' needs one, but it got the class. "
            f"Write collect({cls.__name__}(…))."
        )
    return activity.__get__(None if owner is cls else owner, cls)
