"""Functions over lists: DMN 10.3.4.4, `sort` of 10.3.4.9, and those that Camunda adds.

No list that is given is ever changed. Where DMN lets a position be any of `1..L` or `-L..-1`, another one gives null;
fractions of positions and lengths are cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from holdfast.core.safe_texts import count_noun
from holdfast.feel.comparing import ATOMS, compare, equal
from holdfast.feel.functions import statistics
from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import LONG, Fail, Run
from holdfast.feel.temporal.values import DaysTimeDuration, YearsMonthsDuration
from holdfast.feel.values import Function, Value

_NUMBER: Final = 112
_LIST: Final = 80
_PLACE: Final = 160
"""Bytes of a number, of a small list, and of a place in an index."""

# --- looking ---


def contains_item(run: Run, items: list[Value], element: Value) -> bool:
    """`list contains`: whether an item is equal to the element."""
    run.spend(len(items))
    kind = type(element)
    if kind is str and len(element) > LONG:
        return any(equal(item, element, run) for item in items)
    if kind in ATOMS:
        return any(type(item) is kind and item == element for item in items)
    return any(equal(item, element, run) for item in items)


def count_items(run: Run, items: list[Value]) -> Decimal:
    """`count`: how many items a list has, with nulls."""
    return Decimal(len(items))


def find_items(run: Run, items: list[Value], match: Value) -> list[Decimal]:
    """`index of`: the positions of all items that are equal to the match, from 1."""
    run.spend(len(items))
    found = [Decimal(position) for position, item in enumerate(items, 1) if equal(item, match, run)]
    run.spend(0, _NUMBER * len(found))
    return found


def is_empty(run: Run, items: list[Value]) -> bool:
    """`is empty` (Camunda): whether a list has no items."""
    return not items


def find_least(run: Run, *items: Value) -> Value:
    """`min`: of items that can be compared with each other; null of none."""
    return _find_outermost(run, items, -1)


def find_greatest(run: Run, *items: Value) -> Value:
    """`max`: of items that can be compared with each other; null of none."""
    return _find_outermost(run, items, 1)


def _find_outermost(run: Run, items: Sequence[Value], wanted: int) -> Value:
    run.spend(len(items))
    if not items:
        return None
    best = items[0]
    for item in items:  # The first too, with itself: it may be of a kind that has no order.
        order = compare(item, best, run)
        if order is None:
            raise Fail("its items have no order")
        if order == wanted:
            best = item
    return best


def are_all_true(run: Run, *items: Value) -> bool | None:
    """`all`: false if an item is, else null if one is no boolean, else true; true of none."""
    run.spend(len(items))
    if any(item is False for item in items):
        return False
    return True if _are_booleans(items) else None


def is_any_true(run: Run, *items: Value) -> bool | None:
    """`any`: true if an item is, else null if one is no boolean, else false; false of none."""
    run.spend(len(items))
    if any(item is True for item in items):
        return True
    return False if _are_booleans(items) else None


def _are_booleans(items: Sequence[Value]) -> bool:
    """Whether none is null; whatever else is no boolean has no place there."""
    if any(item is not None and type(item) is not bool for item in items):
        raise Fail("an item is neither a boolean nor null")
    return None not in items


# --- parts and wholes ---


def take_sublist(run: Run, items: list[Value], start: Decimal, length: Decimal | None = None) -> list[Value]:
    """`sublist`: `length` items from the start position, or all from there."""
    first = _find_index(items, start)
    rest = len(items) - first
    if length is not None and not 1 <= length < rest + 1:
        raise Fail(f"the length {length} is not one of 1..{rest}")
    count = rest if length is None else int(length)
    run.spend(count)
    return items[first : first + count]


def append_items(run: Run, items: list[Value], *more: Value) -> list[Value]:
    """`append`: each of the others becomes an item, also if it is a list."""
    run.spend(len(items) + len(more))
    return [*items, *more]


def append_list(run: Run, items: list[Value], more: list[Value]) -> list[Value]:
    """`append`, called with names: the others in one list."""
    return append_items(run, items, *more)


def concatenate_lists(run: Run, *lists: list[Value]) -> list[Value]:
    """`concatenate`: the items of all lists, one list after the other."""
    run.spend(sum(map(len, lists)))
    return [item for items in lists for item in items]


def concatenate_all(run: Run, lists: list[Value]) -> list[Value]:
    """`concatenate`, called with a name: the lists in one list."""
    return concatenate_lists(run, *(one if type(one) is list else [one] for one in lists))


def insert_before(run: Run, items: list[Value], position: Decimal, new_item: Value) -> list[Value]:
    """`insert before`: the new item is at that position then."""
    run.spend(len(items))
    index = _find_index(items, position)
    return [*items[:index], new_item, *items[index:]]


def remove_item(run: Run, items: list[Value], position: Decimal) -> list[Value]:
    """`remove`: the list without what is at that position."""
    run.spend(len(items))
    index = _find_index(items, position)
    return items[:index] + items[index + 1 :]


def replace_item(run: Run, items: list[Value], position: Decimal, new_item: Value) -> list[Value]:
    """`list replace`, by position: the list with the new item there. Raises Fail if there is no such position."""
    run.spend(len(items))
    index = _find_index(items, position)
    return [*items[:index], new_item, *items[index + 1 :]]


def replace_matches(run: Run, items: list[Value], match: Function, new_item: Value) -> list[Value]:
    """`list replace`, of all items for which `match(item, newItem)` is true."""
    return [new_item if _ask(run, match, item, new_item) else item for item in items]


def reverse_list(run: Run, items: list[Value]) -> list[Value]:
    """`reverse`: the items of a list, the last one first."""
    run.spend(len(items))
    return items[::-1]


def flatten_list(run: Run, items: list[Value]) -> list[Value]:
    """`flatten`: the items of all lists inside, however deep, in place of those lists."""
    flat: list[Value] = []
    open_lists: list[Iterator[Value]] = [iter(items)]
    while open_lists:
        for item in open_lists[-1]:
            run.spend(1)
            if type(item) is list:
                open_lists.append(iter(item))
                break
            flat.append(item)
        else:
            open_lists.pop()
    return flat


def partition_list(run: Run, items: list[Value], size: Decimal) -> list[Value]:
    """`partition` (Camunda): lists of `size` items each; the last one has what is left."""
    if size < 1:
        raise Fail(f"the size {size} is not 1 or more")
    run.spend(len(items), int(_LIST * (len(items) / size + 1)))
    step = min(int(size), len(items) or 1)
    return [items[at : at + step] for at in range(0, len(items), step)]


def _find_index(items: list[Value], position: Decimal) -> int:
    """DMN 10.3.4.4: the first position is 1, the last -1. From 0, as Python counts."""
    if not 1 <= position.copy_abs() < len(items) + 1:
        raise Fail(f"{position} is not a position of a list with {count_noun(len(items), 'item')}")
    return int(position) - 1 if position > 0 else len(items) + int(position)


# --- what is there once, what more than once ---


_HASHED: Final = ATOMS | {date, DaysTimeDuration, YearsMonthsDuration}
"""Types that have nothing in another type that is equal to them, and are equal where Python says so."""


class _Distinct:
    """Values, each of them once, by FEEL's equality, in the order in which they came."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._hashed: dict[tuple[type, Value], int] = {}
        self._others: list[int] = []
        self.values: list[Value] = []

    def add(self, value: Value) -> int:
        """Where among the values it is."""
        new = len(self.values)
        if type(value) in _HASHED:
            if type(value) is str and len(value) > LONG:
                self._run.check_compared(value, value)
            at = self._hashed.setdefault((type(value), value), new)
        else:
            self._run.spend(len(self._others))
            at = next((other for other in self._others if equal(value, self.values[other], self._run)), new)
            if at == new:
                self._others.append(new)
        if at == new:
            self.values.append(value)
        return at


def unite_lists(run: Run, *lists: list[Value]) -> list[Value]:
    """`union`: the items of all lists, without repetitions."""
    return find_distinct(run, concatenate_lists(run, *lists))


def unite_all(run: Run, lists: list[Value]) -> list[Value]:
    """`union`, called with a name: the lists in one list."""
    return find_distinct(run, concatenate_all(run, lists))


def find_distinct(run: Run, items: list[Value]) -> list[Value]:
    """`distinct values`: the items without repetitions."""
    run.spend(len(items), _PLACE * len(items))
    distinct = _Distinct(run)
    for item in items:
        distinct.add(item)
    return distinct.values


def find_duplicates(run: Run, items: list[Value]) -> list[Value]:
    """`duplicate values` (Camunda): each item that is there more than once, once."""
    run.spend(len(items), 2 * _PLACE * len(items))
    distinct = _Distinct(run)
    counts = Counter(distinct.add(item) for item in items)
    return [value for at, value in enumerate(distinct.values) if counts[at] > 1]


# --- order ---


def sort_list(run: Run, items: list[Value], precedes: Function) -> list[Value]:
    """`sort`: as `precedes(x, y)` says; what neither precedes the other stays in its order."""
    ordered = list(items)
    width = 1
    while width < len(ordered):
        pairs = (
            (ordered[at : at + width], ordered[at + width : at + 2 * width]) for at in range(0, len(ordered), 2 * width)
        )
        ordered = [item for left, right in pairs for item in _merge(run, left, right, precedes)]
        width *= 2
    return ordered


def _merge(run: Run, left: list[Value], right: list[Value], precedes: Function) -> list[Value]:
    merged: list[Value] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if _ask(run, precedes, right[j], left[i]):
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]


def _ask(run: Run, question: Function, left: Value, right: Value) -> bool:
    """What a function of two parameters says; it has to be true or false."""
    run.spend(1)
    if len(question.parameters) != 2:
        raise Fail(f"the function has to have two parameters, but has {len(question.parameters)}")
    answer = question.call(run, [left, right])
    if type(answer) is not bool:
        raise Fail("the function gives neither true nor false")
    return answer


LISTS: Final[Mapping[str, tuple[Form, ...]]] = {
    "list contains": (form(contains_item, ("list", "list"), ("element", "any?")),),
    "count": (form(count_items, ("list", "list")),),
    "min": (form(find_least, ("list", "any?"), is_variadic=True, numbered="c"),),
    "max": (form(find_greatest, ("list", "any?"), is_variadic=True, numbered="c"),),
    "sum": (form(statistics.add_up, ("list", "any?"), is_variadic=True, numbered="n"),),
    "product": (form(statistics.multiply_out, ("list", "any?"), is_variadic=True, numbered="n"),),
    "mean": (form(statistics.find_mean, ("list", "any?"), is_variadic=True, numbered="n"),),
    "median": (form(statistics.find_median, ("list", "any?"), is_variadic=True, numbered="n"),),
    "stddev": (form(statistics.find_deviation, ("list", "any?"), is_variadic=True, numbered="n"),),
    "mode": (form(statistics.find_modes, ("list", "any?"), is_variadic=True, numbered="n"),),
    "all": (form(are_all_true, ("list", "any?"), is_variadic=True, numbered="b"),),
    "any": (form(is_any_true, ("list", "any?"), is_variadic=True, numbered="b"),),
    "sublist": (form(take_sublist, ("list", "list"), ("start position", "number"), ("length", "number"), required=2),),
    "append": (
        form(append_items, ("list", "list"), ("item", "any?"), is_variadic=True),
        form(append_list, ("list", "list"), ("items", "list")),
    ),
    "concatenate": (
        form(concatenate_lists, ("list", "list"), is_variadic=True),
        form(concatenate_all, ("lists", "list")),
    ),
    "insert before": (form(insert_before, ("list", "list"), ("position", "number"), ("newItem", "any?")),),
    "remove": (form(remove_item, ("list", "list"), ("position", "number")),),
    "list replace": (
        form(replace_item, ("list", "list"), ("position", "number"), ("newItem", "any?")),
        form(replace_matches, ("list", "list"), ("match", "function"), ("newItem", "any?")),
    ),
    "reverse": (form(reverse_list, ("list", "list")),),
    "index of": (form(find_items, ("list", "list"), ("match", "any?")),),
    "union": (
        form(unite_lists, ("list", "list"), is_variadic=True),
        form(unite_all, ("lists", "list")),
    ),
    "distinct values": (form(find_distinct, ("list", "list")),),
    "duplicate values": (form(find_duplicates, ("list", "list")),),
    "flatten": (form(flatten_list, ("list", "list")),),
    "sort": (form(sort_list, ("list", "list"), ("precedes", "function")),),
    "partition": (form(partition_list, ("list", "list"), ("size", "number")),),
    "is empty": (form(is_empty, ("list", "list")),),
}
"""By name. Those that are variadic take their items one by one; Camunda has names for lists of these."""
