"""The programs in the documents run as they stand, and print what the pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.documents.programs import ROOT, Program, read_programs
from tests.postgres.server import PostgresServer

OWN_TESTS: Final = {"dmn.md", "feel.md", "operations.md", "transactions.md"}
"""Pages whose programs have tests of their own, which look closer."""
PROGRAMS: Final = [
    program
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.name not in OWN_TESTS
    for program in read_programs(page)
]
SERVER: Final = "postgresql://localhost/app"
"""The URL in programs that need a server: the tests' own takes its place."""


def run(program: Program, folder: Path, server: str = SERVER) -> str:
    for name, text in program.files.items():
        (folder / name).write_text(text.replace(SERVER, server))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.text.replace(SERVER, server)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program_can_be_compiled(program: Program) -> None:
    compile(program.text, str(program), "exec", flags=_TOP_LEVEL_AWAIT)


_TOP_LEVEL_AWAIT: Final = 0x2000
"""ast.PyCF_ALLOW_TOP_LEVEL_AWAIT: fragments may await."""


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.is_run and SERVER not in one.text], ids=str)
def test_program_runs_and_prints_what_the_page_says(program: Program, tmp_path: Path) -> None:
    said = run(program, tmp_path)

    assert program.prints is None or said == program.prints


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.is_run and SERVER in one.text], ids=str)
def test_program_with_a_server_runs_and_prints_what_the_page_says(
    program: Program, tmp_path: Path, own_postgres: PostgresServer
) -> None:
    said = run(program, tmp_path, own_postgres.url())

    assert program.prints is None or said == program.prints
