"""Everything on the page about FEEL is true: programs run as they stand, examples have the values that they say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from click.testing import CliRunner

from holdfast import feel
from holdfast.cli import main
from holdfast.feel import lexer, parser, regex_syntax, running
from holdfast.feel.functions.signatures import Form
from holdfast.feel.functions.table import BUILT_INS
from tests.feel.tck import is_same

PAGE: Final = (Path(__file__).parents[1] / "docs" / "feel.md").read_text()
PROGRAMS: Final = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
CONTEXT: Final = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
COMMANDS: Final = re.findall(r"^holdfast (feel .*)$", PAGE, re.MULTILINE)
NOW: Final = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def read_tables(*head: str) -> list[list[str]]:
    """The rows of all tables with these headings, cell by cell."""
    rows, is_wanted = [], False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_wanted = False
        elif cells == list(head):
            is_wanted = True
        elif is_wanted and not line.startswith("|--"):
            rows.append(cells)
    return rows


def read_code(cell: str) -> list[str]:
    """The pieces of code in a cell."""
    return [code[2].strip() if code[1] else code[3] for code in re.finditer(r"(``) (.*?) ``|`([^`]+)`", cell)]


EXPRESSIONS: Final = [(*read_code(one), *read_code(two)) for one, two in read_tables("expression", "value")]
TESTS: Final = [tuple(read_code(" ".join(row))) for row in read_tables("tests", "of", "value")]
FUNCTIONS: Final = [
    (read_code(name)[0], name, read_code(example)) for name, _, example in read_tables("function", "gives", "example")
]
SIGNATURES: Final = [signature for signature, _, _ in FUNCTIONS]


def evaluate(text: str) -> Any:
    return feel.evaluate(text, CONTEXT, clock=lambda: NOW, random=Random(1).getrandbits)


def write_signature(name: str, one: Form) -> str:
    """A form as the page writes it."""
    parameters = [
        f"{parameter.name}{'?' if at >= one.required else ''}"
        if not one.is_variadic or at < len(one.parameters) - 1
        else f"{parameter.name}…"
        for at, parameter in enumerate(one.parameters)
    ]
    return f"{name}({', '.join(parameters)})"


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_program_prints_what_the_page_says(program: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, output), done.stderr


def test_every_program_has_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 4


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_expression_has_the_value_that_the_page_says(text: str, expected: str) -> None:
    assert is_same(evaluate(text), evaluate(expected))


@pytest.mark.parametrize(("tests", "value", "expected"), TESTS)
def test_unary_tests_give_what_the_page_says(tests: str, value: str, expected: str) -> None:
    assert feel.unary_tests(tests, evaluate(value), CONTEXT) is evaluate(expected)


@pytest.mark.parametrize(("signature", "examples"), [(signature, examples) for signature, _, examples in FUNCTIONS])
def test_function_gives_what_the_page_says(signature: str, examples: list[str]) -> None:
    text, expected = examples

    assert text.find(signature.partition("(")[0]) >= 0
    assert is_same(evaluate(text), evaluate(expected))


def test_page_lists_the_functions_that_there_are() -> None:
    assert {signature.partition("(")[0] for signature in SIGNATURES} == set(BUILT_INS)


def test_signatures_are_those_of_the_functions() -> None:
    known = {write_signature(name, one) for name, forms in BUILT_INS.items() for one in forms}

    # Both may be left out, for the function to say what is missing.
    known.add("is(value1, value2)")
    assert [signature for signature in SIGNATURES if signature not in known] == []
    assert len(SIGNATURES) == len(set(SIGNATURES))


@pytest.mark.parametrize(
    "number",
    [
        lexer.LONGEST_TEXT,
        parser.DEEPEST,
        running.MOST_STEPS,
        running.MOST_ITEMS,
        running.MOST_CHARACTERS,
        running.MOST_BYTES,
        running.MOST_WARNINGS,
        running.DEEPEST,
        regex_syntax.LONGEST,
    ],
)
def test_limits_are_those_of_the_code(number: int) -> None:
    limits = PAGE.split("## Limits")[1].split("##")[0]

    assert f"| {number:,} |" in limits


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works_as_printed(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("order.json").write_text('{"prices": [60, 50.5]}')

    result = CliRunner().invoke(main, shlex.split(command))

    assert (result.exit_code, result.stderr) == (0, "")


def test_there_are_examples_of_everything() -> None:
    assert len(EXPRESSIONS) > 40
    assert len(TESTS) > 5
    assert len(COMMANDS) == 4
