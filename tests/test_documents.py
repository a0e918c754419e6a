"""The documents name code that exists, and the README's program and commands work as printed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
README = (ROOT / "README.md").read_text()
NAMES = sorted(set(re.findall(r"`(holdfast(?:\.\w+)+)`", ARCHITECTURE)))
PATHS = sorted(set(re.findall(r"`((?:holdfast|bench|tests)/[\w/]*(?:\.\w+)?)`", ARCHITECTURE + README)))


def find(name: str) -> Any:
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def test_architecture_names_the_way_of_a_signal() -> None:
    way = ARCHITECTURE.split("## The way of a signal")[1].split("##")[0]
    steps = re.findall(r"^\d\. `(holdfast[\w.]+)`", way, re.MULTILINE)
    modules = [step.rsplit(".", 2)[0] if step.split(".")[-2][0].isupper() else step.rsplit(".", 1)[0] for step in steps]
    assert len(steps) >= 6
    assert len(set(modules[:-1])) == len(modules) - 1, "no file is visited twice before the way back"


@pytest.mark.parametrize("name", NAMES)
def test_name_in_the_architecture_exists(name: str) -> None:
    assert find(name) is not None


@pytest.mark.parametrize("path", PATHS)
def test_path_in_the_documents_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_program_in_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert program is not None

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program[1]], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['You said: hello', 'You said: how are you?']"


def test_commands_in_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^make (\w+)", README, re.MULTILINE)

    assert commands[:2] == ["up", "test"]
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


def test_readme_is_short_and_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", README)

    assert README.count("\n") < 110
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_ci_runs_the_check_and_the_readme_test_command() -> None:
    script = (ROOT / ".ci/run").read_text()

    assert "make check" in script
    assert "make test" in script
