"""`--codec`: values that a codec encoded are shown, and those that are sent are encoded; all else works without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast import Engine
from tests.cli.conftest import double, doubling, waiting
from tests.client.test_codec import Backwards

Invoke = Callable[..., Result]
CODEC = "tests.client.test_codec:Backwards"
SECRET = "tell nobody"

an_object = Backwards()


def make_nothing() -> None:
    """No codec comes of it."""


def fail() -> None:
    raise ValueError("no key")


@pytest.fixture(params=["sqlite", "postgres"])
def encoded(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database whose values are encoded; nobody works on it."""
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'app.db'}" if is_file else str(request.getfixturevalue("postgres_url"))

    async def fill() -> None:
        async with Engine(url, workflows=[doubling, waiting], activities=[double], codec=Backwards()) as engine:
            await (await engine.start(doubling, 12345, workflow_id="done")).result()
            await engine.start(waiting, workflow_id="open")

    asyncio.run(fill())
    return url


@pytest.mark.parametrize("command", ["show", "history", "tail"])
def test_values_are_shown_with_it_and_the_rest_without(invoke: Invoke, encoded: str, command: str) -> None:
    without = invoke(command, encoded, "done")
    with_codec = invoke(command, encoded, "done", "--codec", CODEC)
    as_json = invoke(command, encoded, "done", "--codec", "tests.cli.test_codecs:an_object", "--json")

    assert (without.exit_code, with_codec.exit_code, as_json.exit_code) == (0, 0, 0)
    assert "12345" not in without.stdout
    assert "12345" in with_codec.stdout
    assert "12345" in as_json.stdout
    assert without.stdout.count("\n") == with_codec.stdout.count("\n")


def test_what_is_started_and_signalled_is_encoded_and_replayed(invoke: Invoke, encoded: str) -> None:
    sent = invoke("signal", encoded, "open", "word", SECRET, "--text", "--codec", CODEC)
    started = invoke("start", encoded, "doubling", "777", "--id", "late", "--codec", CODEC)
    exported = invoke("export", encoded)

    async def finish() -> tuple[str, int]:
        async with Engine(encoded, workflows=[doubling, waiting], activities=[double], codec=Backwards()) as engine:
            return await engine.handle("open").result(), await engine.handle("late").result()

    assert (sent.exit_code, started.exit_code) == (0, 0), sent.output + started.output
    assert SECRET not in exported.stdout
    assert invoke("replay", encoded, "--module", "tests.cli.conftest", "--codec", CODEC).exit_code == 0
    assert asyncio.run(finish()) == (SECRET, 1554)
    waited = invoke("start", encoded, "doubling", "1", "--id", "late", "--on-closed", "reject", "--codec", CODEC)
    assert waited.exit_code == 1
    shown = json.loads(invoke("show", encoded, "open", "--json", "--codec", CODEC).stdout)
    assert SECRET in json.dumps(shown)


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("nothing", "Expected MODULE:NAME"),
        ("no_such_module:codec", "Expected to import module 'no_such_module'"),
        ("tests.cli.test_codecs:gone", "to have 'gone'"),
        ("tests.cli.test_codecs:make_nothing", "to be a codec"),
        ("tests.cli.test_codecs:fail", "ValueError: no key"),
        ("tests.cli.test_codecs:SECRET", "to be a codec"),
    ],
)
def test_what_is_no_codec_is_refused(invoke: Invoke, database: Path, codec: str, message: str) -> None:
    result = invoke("show", database, "open", "--codec", codec)

    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)
