"""The documents become a site: every link leads somewhere, every page is in the menu, every name of the reference exists."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import holdfast
import holdfast.errors
from tests.documents.programs import ROOT


def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()
    assert "payload_limit" in (tmp_path / "reference.html").read_text()


def test_reference_shows_every_public_name() -> None:
    page = (ROOT / "docs" / "reference.md").read_text()
    errors = set(holdfast.errors.__dict__)

    missing = [name for name in holdfast.__all__ if f"::: holdfast.{name}\n" not in page and name not in errors]

    assert missing == []
