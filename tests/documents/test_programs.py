"""The programs in the documents run as they stand, one after the other, and print what the pages say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.documents.programs import ROOT, Program, read_programs
from tests.postgres.server import PostgresServer

OWN_TESTS: Final = {"dmn.md", "feel.md", "operations.md", "transactions.md"}
"""Pages whose programs have tests of their own, which look closer."""
PAGES: Final = {
    page.relative_to(ROOT).as_posix(): programs
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.name not in OWN_TESTS and (programs := read_programs(page))
}
SERVER: Final = "postgresql://localhost/app"
"""The URL in programs that need a server: that of the tests takes its place."""
WITH_SERVER: Final = [
    page
    for page, programs in PAGES.items()
    if any(SERVER in text for one in programs for text in (one.text, *one.files.values()))
]
WARNINGS: Final = ["-W", "error", "-W", "ignore:Using `httpx` with `starlette.testclient`"]
"""All are errors, but for that of FastAPI's test client about the package which it uses."""


def run(program: Program, folder: Path, server: str) -> None:
    for name, text in program.files.items():
        (folder / name).write_text(text.replace(SERVER, server))
    done = subprocess.run(
        [sys.executable, *WARNINGS, "-u", "-c", program.text.replace(SERVER, server)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{program}: {done.stderr}"
    assert program.prints in (None, done.stdout), f"{program} prints something else:\n{done.stdout}"


def run_page(page: str, folder: Path, server: str = SERVER) -> None:
    """Run the programs of a page in one folder, as a reader does."""
    for program in PAGES[page]:
        if program.is_run:
            run(program, folder, server)


@pytest.mark.parametrize("page", PAGES)
def test_programs_and_fragments_of_a_page_can_be_compiled(page: str) -> None:
    for program in PAGES[page]:
        compile(program.text, str(program), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITH_SERVER])
def test_programs_of_a_page_print_what_it_says(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", WITH_SERVER)
def test_programs_of_a_page_print_what_it_says_on_a_server(page: str, tmp_path: Path, own_postgres: PostgresServer) -> None:
    run_page(page, tmp_path, own_postgres.url())
