"""The options of the engine: one list in the code, one in the documents, and both say the same."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, Retry, activity, workflow
from holdfast.core.retry import RetryPolicy
from holdfast.engine.config import Config, EngineOptions, make_config
from holdfast.errors import InvalidConfiguration
from tests.engine.activities.process_activities import Job, compute
from tests.places import make_url

PAGE = (Path(__file__).parents[1] / "docs" / "options.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", PAGE, re.MULTILINE))
FIELDS = {field.name: field for field in msgspec.structs.fields(Config)}
UNITS = {"KiB": 1024, "MiB": 1024 * 1024, "s": 1}


def read_number(text: str) -> float | None:
    """A default as the page prints it: 10,000, 64 MiB or 2 s."""
    found = re.fullmatch(r"([\d,.]+)(?: (\w+))?", text)
    return None if found is None else float(found[1].replace(",", "")) * UNITS[found[2] or "s"]


def test_the_page_lists_exactly_the_keywords_of_the_engine() -> None:
    own = set(inspect.signature(Engine.__init__).parameters) - {"self", "store", "options"}

    assert set(ROWS) == own | set(EngineOptions.__annotations__)


def test_every_option_is_part_of_the_configuration() -> None:
    assert set(EngineOptions.__annotations__) == set(FIELDS)


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_page_tells_the_default_of_each_option(name: str) -> None:
    default, told = FIELDS[name].default, ROWS[name]

    if default is None or isinstance(default, bool):
        assert told == str(default)
    elif isinstance(default, int | float):
        assert read_number(told) == default
    elif isinstance(default, str):
        assert told == f'`"{default}"`'
    else:
        assert eval(told.strip("`"), {"Retry": Retry}) == default


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_code_says_what_each_option_means(name: str) -> None:
    [options] = ast.parse(textwrap.dedent(inspect.getsource(EngineOptions))).body
    assert isinstance(options, ast.ClassDef)
    told = {
        ast.unparse(field.target): ast.unparse(text)
        for field, text in pairwise(options.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }

    assert "Default " in told[name]


def test_options_may_be_set() -> None:
    config = Engine(
        "memory://",
        turn_limit=0.5,
        max_turn_bytes=1_000,
        storage_retry=Retry(max_attempts=3, initial=0.1),
        timer_resolution=timedelta(milliseconds=50),
        dead_letter_policy="discard",
        retention=timedelta(days=1),
        dead_letter_retention=timedelta(days=7),
    ).config

    assert (config.turn_limit, config.max_turn_bytes, config.dead_letter_policy) == (0.5, 1_000, "discard")
    assert config.storage_retry == Retry(max_attempts=3, initial=0.1)
    assert (config.timer_resolution, config.retention) == (0.05, 24 * 3600)
    assert config.dead_letter_retention == 7 * 24 * 3600
    assert config.limits.timer_resolution == 50_000
    assert Config().limits.timer_resolution == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turn_limit": 0.05}, "Expected turn_limit=… to be a number of seconds from 0.1 to 5, but it is 0.05"),
        ({"turn_limit": 6}, "Expected turn_limit=… to be a number of seconds from 0.1 to 5, but it is 6"),
        ({"turn_limit": True}, "Expected turn_limit=… to be a number of seconds from 0.1 to 5, but it is True"),
        ({"turn_limit": "1"}, "Expected turn_limit=… to be a number of seconds from 0.1 to 5, but it is '1'"),
        ({"max_turn_bytes": 0}, "Expected max_turn_bytes=… to be a whole number from 1 to 536,870,912, but it is 0"),
        ({"storage_retry": 5}, "Expected storage_retry=… to be a Retry(...), but it is 5"),
        ({"storage_retry": Retry(initial=0)}, "Expected storage_retry=… to wait for at least a millisecond"),
        ({"storage_retry": Retry(initial=2, maximum=1)}, "Expected storage_retry=… to wait for at least a millisecond"),
        ({"storage_retry": Retry(non_retryable=[ValueError])}, "Expected storage_retry=… to name no exceptions"),
        (
            {"timer_resolution": 0},
            "Expected timer_resolution=… to be a timedelta or a positive number of seconds, at most",
        ),
        ({"timer_resolution": 3601}, "Expected timer_resolution=… to be a timedelta or a positive number of seconds"),
        ({"timer_resolution": "1s"}, "Expected timer_resolution=… to be a timedelta or a positive number of seconds"),
        (
            {"dead_letter_retention": 0},
            "Expected dead_letter_retention=… to be a timedelta or a positive number of seconds, at most a hundred years",
        ),
        ({"storage_retry": Retry(only=[ValueError])}, "Expected storage_retry=… to name no exceptions"),
        ({"propagate_child_failures": 1}, "Expected propagate_child_failures=… to be True or False, but it is 1"),
        ({"dead_letter_policy": "burn"}, "Expected dead_letter_policy=… to be 'keep' or 'discard', but it is 'burn'"),
        ({"dead_letter_policy": []}, "Expected dead_letter_policy=… to be 'keep' or 'discard', but it is []"),
    ],
)
def test_option_out_of_its_range_is_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        make_config(options)

    assert refused.value.message.startswith(message)


NUMBERS = sorted(
    name
    for name, field in FIELDS.items()
    if not isinstance(field.default, RetryPolicy | str | bool)
    and name not in ("searchable_state", "org_limits", "org_limit_overrides")
)
CENTURY = 100 * 366 * 24 * 3600
MOST = {
    "turn_limit": 5,
    "timer_resolution": 3600,
    "heartbeat": CENTURY // 2,
    "payload_limit": 512 * 1024**2,
    "max_turn_bytes": 512 * 1024**2,
    "max_live_bytes": 1024**4,
    "history_warning_bytes": 1024**4,
}
LARGEST: Any = {
    name: MOST.get(name, 1_000_000_000 if isinstance(FIELDS[name].default, int) else CENTURY) for name in NUMBERS
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("wrong", [True, float("nan"), float("inf"), 1e300, 2**70, 10**5000, -1, 0, "1"], ids=type)
def test_number_that_cannot_be_right_is_refused(name: str, wrong: Any) -> None:
    options: Any = {name: wrong}

    with pytest.raises(InvalidConfiguration, match=rf"^Expected {name}=… to be .+, but it is .+\. .+\.$"):
        make_config(options)


@pytest.mark.parametrize("name", NUMBERS)
def test_number_may_be_as_large_as_the_page_says_and_no_larger(name: str) -> None:
    assert getattr(make_config(LARGEST), name) == LARGEST[name]

    with pytest.raises(InvalidConfiguration):
        make_config(LARGEST | {name: LARGEST[name] + 1})


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_url(request, tmp_path)


async def test_engine_works_with_the_largest_options(url: str) -> None:
    @activity
    def say(word: str) -> str:
        return word

    @workflow
    async def order(ctx: Context) -> list[Any]:
        word = await ctx.wait_for_signal("word", str)
        return [await ctx.run(say, word), (await ctx.run(compute, Job(2)))[1]]

    limits = {"default": 1_000_000_000}
    async with Engine(url, workflows=[order], activities=[say, compute], queue_limits=limits, **LARGEST) as engine:
        handle = await engine.start(order, idempotency_key="once")
        again = await engine.start(order, idempotency_key="once")
        await handle.signal("word", "yes")

        assert await handle.result() == ["yes", 4]
        assert again.created is False
