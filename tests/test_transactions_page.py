"""The programs on the page about transactions run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.postgres.server import PostgresServer

PAGE = (Path(__file__).parent.parent / "docs/transactions.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_program_with_a_users_own_connection_runs(own_postgres: PostgresServer, tmp_path: Path) -> None:
    program = PROGRAMS[0]
    assert program.count("postgresql://localhost/app") == 1

    said = run(program.replace("postgresql://localhost/app", own_postgres.url()), tmp_path)

    assert said == "order 1 is on its way"


def test_program_with_a_transaction_of_the_engines_runs(tmp_path: Path) -> None:
    assert run(PROGRAMS[1], tmp_path) == "700"


def test_there_are_no_other_programs() -> None:
    assert len(PROGRAMS) == 2
