"""Loops: `for`, `some`, `every` and filters. Each turn of a loop is a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from holdfast.feel.comparing import compare
from holdfast.feel.operators import Evaluate, warn_of_no_boolean
from holdfast.feel.running import Fail, Run
from holdfast.feel.scopes import RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.temporal import arithmetic as temporal
from holdfast.feel.temporal.values import DaysTimeDuration
from holdfast.feel.temporal.values import name_type as name_temporal
from holdfast.feel.types import name_type
from holdfast.feel.values import NUMBERS, Range, Value
from holdfast.feel.weights import NOTHING, Weight

_STEPS_OF_DATE: Final = 4
_BYTES: Final = 112
"""Of a number, and of its place in a list."""
_ONE: Final = Decimal(1)
_ONE_BACK: Final = Decimal(-1)
_DAY: Final = DaysTimeDuration(86_400 * 10**9)
_DAY_BACK: Final = DaysTimeDuration(-86_400 * 10**9)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a loop's values come from, and the place in the frame where each stands in its turn."""

    place: int
    start: Evaluate
    end: Evaluate | None
    turn: Weight
    """What each of its values costs: the body of the loop, or the source behind it."""


Visit: TypeAlias = Callable[[Frame], bool]
"""Called in each turn; whether to go on."""


def list_items(run: Run, value: Value, turn: Weight = NOTHING) -> Sequence[Value]:
    """What a loop over a value goes through, each at the cost of a turn. Raises Fail if that is nothing."""
    if type(value) is list:
        count = len(value)
        run.spend(count + count * turn.steps, count * turn.size)
        return value
    if value is None:
        raise Fail("null cannot be iterated over")
    if type(value) is Range:
        if not (value.has_start and value.has_end):
            raise Fail("a range without an end cannot be iterated over")
        if compare(value.start, value.end) == 1:
            raise Fail("a range that ends before it starts holds nothing to iterate over")
        items = list(walk(run, value.start, value.end, Weight(turn.steps, turn.size + _BYTES)))
        begin = 0 if value.start_included else 1
        return items[begin : None if value.end_included else -1]
    return [value]


def walk(run: Run, start: Value, end: Value, turn: Weight = NOTHING) -> Iterator[Value]:
    """From a number or a date to another, up or down, by one, each at the cost of a turn. Raises Fail."""
    is_date = name_temporal(start) == "date" and name_temporal(end) == "date"
    if not is_date and not (type(start) is Decimal and type(end) is Decimal):
        raise Fail(f"a range from a {name_type(start)} to a {name_type(end)} cannot be iterated over")
    order = compare(start, end) or 0
    step: Value = (_DAY if is_date else _ONE) if order <= 0 else (_DAY_BACK if is_date else _ONE_BACK)
    value = start
    steps, size = turn.steps + (_STEPS_OF_DATE if is_date else 1), turn.size
    while True:
        run.spend(steps, size)
        now = compare(value, end)
        if now is None or now * order < 0:
            return  # gone past it
        yield value
        if now == 0:
            return
        value = temporal.add(value, step) if is_date else NUMBERS.add(value, step)


def visit_all(frame: Frame, sources: Sequence[Source], visit: Visit, depth: int = 0) -> bool:
    """Call `visit` for every combination, the last source fastest; False if it said to stop. Raises Fail."""
    run: Run = frame[RUN]
    source = sources[depth]
    start = source.start(frame)
    items: Sequence[Value] | Iterator[Value]
    turn = source.turn
    items = list_items(run, start, turn) if source.end is None else walk(run, start, source.end(frame), turn)
    is_last = depth + 1 == len(sources)
    place = source.place
    for item in items:
        frame[place] = item
        if not (visit(frame) if is_last else visit_all(frame, sources, visit, depth + 1)):
            return False
    return True


def make_for(sources: Sequence[Source], body: Evaluate, partial: int | None, spot: Spot, *, copies: bool) -> Evaluate:
    """`for … return body`. `partial` is where the results so far stand, if the body looks at them.

    With `copies`, each turn has a frame of its own: functions that are made in it keep what they see.
    """
    if len(sources) == 1 and partial is None and not copies:
        return _make_plain_for(sources[0], body, spot)

    def loop(frame: Frame) -> Value:
        results: list[Value] = []
        run: Run = frame[RUN]

        def visit(turn: Frame) -> bool:
            if partial is not None:
                run.spend(len(results))
                turn[partial] = results[:]
            if copies:
                run.spend(len(turn) >> 5, 8 * len(turn))
            results.append(body(turn[:] if copies else turn))
            return True

        try:
            visit_all(frame, sources, visit)
        except Fail as error:
            run.warn(str(error), spot)
            return None
        return results

    return loop


def _make_plain_for(source: Source, body: Evaluate, spot: Spot) -> Evaluate:
    """The usual case: one iterator, and nothing that looks back."""
    place, start, end, turn = source.place, source.start, source.end, source.turn

    def loop(frame: Frame) -> Value:
        run: Run = frame[RUN]
        results: list[Value] = []
        try:
            for item in list_items(run, start(frame), turn) if end is None else walk(run, start(frame), end(frame), turn):
                frame[place] = item
                results.append(body(frame))
        except Fail as error:
            run.warn(str(error), spot)
            return None
        return results

    return loop


def make_quantified(sources: Sequence[Source], condition: Evaluate, spot: Spot, *, is_every: bool) -> Evaluate:
    """`some … satisfies condition`, or `every`: the three-valued `or`, or `and`, of all turns."""

    def quantified(frame: Frame) -> bool | None:
        result: bool | None = is_every

        def visit(turn: Frame) -> bool:
            nonlocal result
            value = condition(turn)
            if value is (not is_every):
                result = not is_every
                return False
            if value is not is_every:
                warn_of_no_boolean(frame[RUN], value, "behind 'satisfies' stands", spot)
                result = None
            return True

        try:
            visit_all(frame, sources, visit)
        except Fail as error:
            frame[RUN].warn(str(error), spot)
            return None
        return result

    return quantified


def make_filter(
    source: Evaluate, condition: Evaluate, place: int, spot: Spot, *, is_boolean: bool, turn: Weight
) -> Evaluate:
    """`source[condition]`: the items for which it is true, or the one at a position.

    DMN 10.3.2.5. `is_boolean`: the condition cannot be a position. `turn` is what it costs for one item.
    """

    def choose(frame: Frame) -> Value:
        value = source(frame)
        run: Run = frame[RUN]
        if type(value) is list:
            items = value
        elif value is None:
            run.warn("null has no items to choose from", spot)
            return None
        else:
            items = [value]
        chosen: list[Value] = []
        rest = iter(items)
        if not is_boolean:
            first = frame[place] = next(rest, None)
            answer = condition(frame)
            if type(answer) is Decimal:
                return take_at(run, items, answer, spot)
            warn_of_no_boolean(run, answer, "in a filter stands a position or", spot)
            if answer is True and items:
                chosen.append(first)
        count = len(items)
        run.spend(count + count * turn.steps, count * turn.size)
        for item in rest:
            frame[place] = item
            answer = condition(frame)
            if answer is True:
                chosen.append(item)
            elif answer is not False:
                warn_of_no_boolean(run, answer, "in a filter stands", spot)
        return chosen

    return choose


def take_at(run: Run, items: Sequence[Value], position: Decimal, spot: Spot | None = None) -> Value:
    """The item at a position, from 1 on, or from -1 on backwards; null if there is none."""
    count = len(items)
    if position == position.to_integral_value() and position != 0 and abs(position) <= count:
        index = int(position)
        return items[index - 1 if index > 0 else index]
    run.warn(f"a list of {count} has no item at {position}", spot)
    return None
