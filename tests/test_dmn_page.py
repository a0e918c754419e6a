"""The page about DMN is true: programs and commands run as they stand, policies and limits are those of the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from holdfast import dmn
from holdfast.cli import main
from holdfast.dmn import loading, policies, problems, reading, validation
from holdfast.feel import running
from holdfast.feel.writing import write_text
from tests.dmn.models import data, decision, make_xml, table

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "dmn.md").read_text()
PROGRAMS: Final = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
COMMANDS: Final = re.findall(r"^holdfast (dmn .*)$", PAGE, re.MULTILINE)
POLICIES: Final = re.findall(r"^\| `([A-Z].?)` ([A-Z ]+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
FILES: Final = {
    "parcel.json": '{"Weight": 7, "Express": true, "Zone": "world"}',
    "applicant.json": '{"Applicant": {"Age": 30, "Monthly Income": 9, "Monthly Expenses": 1, "Credit History": "good"}}',
}


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_program_prints_what_the_page_says(program: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, output), done.stderr


def test_every_program_has_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works_as_printed(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)

    result = CliRunner().invoke(main, shlex.split(command))

    assert (result.exit_code, result.stderr) == (0, "")
    assert len(COMMANDS) == 4


def test_page_lists_the_hit_policies_that_there_are() -> None:
    assert [letter for letter, _, _ in POLICIES] == [policy.value for policy in dmn.HitPolicy]


@pytest.mark.parametrize(("letter", "empty"), [(letter, empty) for letter, _, empty in POLICIES])
def test_table_without_a_match_gives_what_the_page_says(letter: str, empty: str) -> None:
    value = policies.get_empty(dmn.HitPolicy(letter))

    assert write_text(running.Run(), [value]) == f"[{empty.strip('`')}]"


@pytest.mark.parametrize(
    ("policy", "aggregation", "expected"),
    [
        ("UNIQUE", "", None),
        ("ANY", "", None),
        ("PRIORITY", "", 3),
        ("FIRST", "", 1),
        ("RULE ORDER", "", [1, 3, 2]),
        ("OUTPUT ORDER", "", [3, 2, 1]),
        ("COLLECT", "", [1, 3, 2]),
        ("COLLECT", "SUM", 6),
        ("COLLECT", "MIN", 1),
        ("COLLECT", "MAX", 3),
        ("COLLECT", "COUNT", 3),
    ],
)
def test_hit_policy_gives_what_the_page_says(policy: str, aggregation: str, expected: object) -> None:
    rules = [["> 0", "1"], ["> 1", "3"], ["> 2", "2"]]
    made = table(["A"], ["o"], rules, policy=policy, aggregation=aggregation, output_values=["3, 2, 1"])
    model = dmn.load(make_xml(data("A", "number"), decision("D", made, inputs=["A"])))

    assert model.evaluate("D", {"A": 5}).value == expected


@pytest.mark.parametrize(
    "number",
    [
        reading.MOST_BYTES,
        reading.DEEPEST,
        loading.MOST_DECISIONS,
        loading.MOST_RULES,
        running.MOST_STEPS,
        problems.MOST_PROBLEMS,
        validation.MOST_RULES,
    ],
)
def test_limits_are_those_of_the_code(number: int) -> None:
    limits = PAGE.split("## Limits")[1].split("##")[0]

    assert f"| {number:,} |" in limits


GROOVY: Final = '<literalExpression expressionLanguage="groovy"><text>1</text></literalExpression>'
JAVA: Final = '<functionDefinition kind="Java"><literalExpression><text>1</text></literalExpression></functionDefinition>'


def test_what_the_page_calls_refused_is_refused() -> None:
    with pytest.raises(dmn.DmnError):
        dmn.load(make_xml('<import name="x" namespace="urn:x" importType="x"/>'))


@pytest.mark.parametrize("logic", [GROOVY, JAVA])
def test_what_the_page_calls_a_problem_of_its_decision_is_one(logic: str) -> None:
    model = dmn.load(make_xml(decision("D", logic), decision("E", "1")))

    assert (len(model.problems), model.evaluate("D", {}).value, model.evaluate("E", {}).value) == (1, None, 1)
