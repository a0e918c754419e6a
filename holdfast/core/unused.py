"""Lists and dictionaries that few executions need: one empty list and one empty dictionary stand for all unused ones.

Each turn and each execution would have a dozen containers of its own else, which the garbage collector has to look at. The
shared ones cannot be changed; `add` and `put` make the first entry's container, and give back what is to be kept instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class _NoItems(list[Any]):
    """The empty list of all. Raises TypeError if it is changed."""

    def _refuse(self, *_args: object, **_named: object) -> NoReturn:
        raise TypeError("Expected a list of its own before something is added to it, but it is the shared one. Use add().")

    append = extend = insert = __iadd__ = _refuse


class _NoEntries(dict[Any, Any]):
    """The empty dictionary of all. Raises TypeError if it is changed."""

    def _refuse(self, *_args: object, **_named: object) -> NoReturn:
        raise TypeError("Expected a dict of its own before something is put into it, but it is the shared one. Use put().")

    __setitem__ = setdefault = update = __ior__ = _refuse


NO_ITEMS: Final[list[Any]] = _NoItems()
NO_ENTRIES: Final[dict[Any, Any]] = _NoEntries()


def add(items: list[T], new: Iterable[T]) -> list[T]:
    """The list with more at its end: itself, or a new one in the place of the shared one."""
    if items is NO_ITEMS:
        return list(new)
    items.extend(new)
    return items


def put(entries: dict[K, T], key: K, value: T) -> dict[K, T]:
    """The dictionary with an entry: itself, or a new one in the place of the shared one."""
    if entries is NO_ENTRIES:
        return {key: value}
    entries[key] = value
    return entries
