from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]


def letters(invoke: Invoke, database: Path) -> list[str]:
    """The ids of the dead letters that are listed."""
    output = invoke("dead-letters", database, "list").stdout
    return [line.split()[0] for line in output.splitlines()[1:] if line.strip()]


def test_list_shows_the_envelope_and_the_reason(invoke: Invoke, database: Path) -> None:
    output = invoke("dead-letters", database, "list").output

    assert "word" in output
    assert "42" in output
    assert len(letters(invoke, database)) == 1


def test_discarded_letter_is_gone(invoke: Invoke, database: Path) -> None:
    (letter,) = letters(invoke, database)

    result = invoke("dead-letters", database, "discard", letter)

    assert result.output == "1 dead letter discarded.\n"
    assert invoke("dead-letters", database, "list").output == "There are none.\n"
    assert "0 waiting envelopes, 0 dead letters" in invoke("check", database).output


def test_requeued_letters_wait_for_the_engine(invoke: Invoke, database: Path) -> None:
    result = invoke("dead-letters", database, "requeue", "--all")

    assert result.output == "1 dead letter requeued.\n"
    assert "1 waiting envelope, 0 dead letters" in invoke("check", database).output


def test_letters_of_another_org_are_not_touched(invoke: Invoke, database: Path) -> None:
    assert invoke("dead-letters", database, "discard", "--all", "--org", "acme").output == "0 dead letters discarded.\n"
    assert len(letters(invoke, database)) == 1


def test_unknown_id_is_an_error(invoke: Invoke, database: Path) -> None:
    result = invoke("dead-letters", database, "discard", 4711)

    assert result.exit_code == 1
    assert "Expected every id to be that of a dead letter" in result.stderr


@pytest.mark.parametrize("rest", [[], ["1", "--all"], ["one"]], ids=["neither", "both", "not a number"])
def test_choice_of_letters_must_be_clear(invoke: Invoke, database: Path, rest: list[str]) -> None:
    result = invoke("dead-letters", database, "discard", *rest)

    assert result.exit_code == 2
    assert len(letters(invoke, database)) == 1
