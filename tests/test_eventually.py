"""The helper that waits for conditions: gives what they give, lets the loop go on, and says what did not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.eventually import eventually, eventually_blocking


def count_up(last: int) -> Callable[[], int]:
    """Gives 0 until it has been called so many times, then the number."""
    calls = iter(range(1, last + 1))
    return lambda: number if (number := next(calls)) == last else 0


async def test_value_of_the_condition_is_given() -> None:
    count = count_up(3)

    async def look() -> int:
        return count()

    assert await eventually(count_up(3)) == 3
    assert await eventually(look) == 3
    assert eventually_blocking(count_up(3)) == 3


async def test_loop_goes_on_meanwhile() -> None:
    happened: list[int] = []
    asyncio.get_running_loop().call_later(0.1, happened.append, 1)

    assert await eventually(lambda: happened) == [1]


async def test_what_was_awaited_is_told() -> None:
    with pytest.raises(AssertionError, match=r"^Expected the end of time within 0\.01 s, but it did not come\.$"):
        await eventually(lambda: False, "the end of time", patience=0.01)
    with pytest.raises(AssertionError, match=r"^Expected the end of time within 0\.01 s, but it did not come\.$"):
        eventually_blocking(lambda: False, "the end of time", patience=0.01)


async def test_condition_is_shown_where_nothing_else_is_said() -> None:
    with pytest.raises(AssertionError, match=r"test_eventually\.py:\d+ \(await eventually\(lambda: 0 or None, patience"):
        await eventually(lambda: 0 or None, patience=0.01)


async def test_what_the_condition_raises_is_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0)
