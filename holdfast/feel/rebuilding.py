"""Values inside of values, rebuilt from the inside out: however deep they are, Python's stack does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from holdfast.errors import FeelError
from holdfast.feel.values import Value

DEEPEST: Final = 1_000
"""Lists and contexts inside each other."""


class Refused(Exception):
    """What a value is that cannot be had here, for the message; where it was found is added to it."""


class Branch:
    """A value with others inside: they are rebuilt first, then `finish` makes the whole of them."""

    __slots__ = ("finish", "inside", "names", "source")

    def __init__(
        self,
        source: Value,
        inside: Collection[Value],
        finish: Callable[[list[Value]], Value],
        names: Iterable[str] | None = None,
    ) -> None:
        self.source = source
        self.inside = inside
        self.finish = finish
        self.names = names
        """What the parts are called, in a message; positions count from 0 if there are no names."""


class _Work:
    """A branch whose parts are being rebuilt."""

    __slots__ = ("branch", "made", "rest")

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.made: list[Value] = []
        self.rest: Iterator[Value] = iter(branch.inside)


def rebuild(value: Value, look: Callable[[Value], Value]) -> Value:
    """What `look` makes of a value: the new value, or a Branch if there are others inside of it.

    What occurs in several places is rebuilt once. Raises FeelError for what `look` refuses, and if it is too deep or
    contains itself.
    """
    path: list[_Work] = []
    done: dict[int, tuple[Value, Value]] = {}  # with the source, so that no other value can get its id
    under_way: set[int] = set()
    try:
        result = look(value)
        if type(result) is not Branch:
            return result
        path.append(_Work(result))
        under_way.add(id(value))
        while True:
            work = path[-1]
            below = _go_on(work, look, done)
            if below is not None:
                _check(below, len(path), under_way)
                under_way.add(id(below.source))
                path.append(_Work(below))
                continue
            made = work.branch.finish(work.made)
            path.pop()
            if not path:
                return made
            under_way.discard(id(work.branch.source))
            done[id(work.branch.source)] = (work.branch.source, made)
            path[-1].made.append(made)
    except Refused as error:
        raise FeelError(_explain(str(error), path)) from None


def _go_on(work: _Work, look: Callable[[Value], Value], done: dict[int, tuple[Value, Value]]) -> Branch | None:
    """Rebuild parts until there are no more, or until one has parts itself: that one."""
    made = work.made
    for part in work.rest:
        new = look(part)
        if type(new) is Branch:
            known = done.get(id(part))
            if known is None:
                return new
            new = known[1]
        made.append(new)
    return None


def _check(branch: Branch, depth: int, under_way: set[int]) -> None:
    if id(branch.source) in under_way:
        raise Refused(f"a {type(branch.source).__name__} that contains itself")
    if depth >= DEEPEST:
        raise Refused(f"something more than {DEEPEST:,} deep")


def _explain(reason: str, path: list[_Work]) -> str:
    """Where and what, with the way to it shortened in the middle."""
    steps = []
    for work in path:
        at = len(work.made)
        if work.branch.names is None:
            steps.append(f"[{at}]")
        else:
            steps.append(f".{next(islice(work.branch.names, at, None), '?')}")
    if len(steps) > 12:
        steps[6:-6] = ["…"]
    place = f" at {''.join(steps).removeprefix('.')}" if steps else ""
    return (
        f"Expected a value that FEEL has{place}, but it is {reason}. Give numbers, texts, booleans, dates, times, "
        "durations, None, and lists, mappings, dataclasses and structs of them."
    )
