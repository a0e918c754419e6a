"""What type checkers see of the API: they refuse the lines of the examples that say `# refused`, and no others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = Path("tests/typing/examples")
Line = tuple[str, int]


def find_marked() -> set[Line]:
    return {
        (path.name, number)
        for path in (ROOT / EXAMPLES).glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }


def run_mypy(folder: Path) -> set[Line]:
    options = ["--strict", "--config-file", str(folder / "mypy.ini"), "--cache-dir", str(folder), "--no-error-summary"]
    (folder / "mypy.ini").write_text("[mypy]\nexplicit_package_bases = true\nfollow_imports_for_stubs = true\n")
    command = [sys.executable, "-m", "mypy", *options, str(EXAMPLES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr, done.stderr
    return {(Path(found[1]).name, int(found[2])) for found in re.finditer(r"(?m)^(.*?):(\d+): error:", done.stdout)}


def run_pyright(folder: Path) -> set[Line]:
    config = {"typeCheckingMode": "standard", "include": [str(ROOT / EXAMPLES)], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors}


@pytest.mark.parametrize("check", [run_mypy, run_pyright])
def test_type_checkers_refuse_exactly_the_wrong_lines(check: object, tmp_path: Path) -> None:
    assert callable(check)
    marked = find_marked()
    refused = check(tmp_path)

    assert len(marked) > 50
    assert (sorted(refused - marked), sorted(marked - refused)) == ([], [])
