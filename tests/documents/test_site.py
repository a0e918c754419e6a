"""The documents become a site: every link leads somewhere, every page is in the menu, every name of the reference exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
import holdfast.errors
import holdfast.testing
from tests.documents.programs import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built once for this module."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    return folder


def test_site_is_built_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()
    assert (site / "pictures" / "life-of-an-order.svg").exists()
    assert "payload_limit" in (site / "reference.html").read_text()


def test_reference_shows_every_public_name() -> None:
    page = (ROOT / "docs" / "reference.md").read_text()
    errors = set(holdfast.errors.__dict__)
    # A function that has the name of its module is named with that: the name alone would show the module.
    shown = {name.removeprefix("holdfast.") for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}

    names = [name for name in holdfast.__all__ if name not in errors]
    names += [f"testing.{name}" for name in holdfast.testing.__all__ if name != "HistorySource"]

    assert [name for name in names if not shown & {name, f"{name}.{name.rpartition('.')[2]}"}] == []
    assert not shown & {"workflow", "testing.replay"}, "these are modules"


def test_names_in_the_reference_are_functions_and_classes_with_their_signatures(site: Path) -> None:
    page = (site / "reference.html").read_text()

    for name in (
        "workflow.workflow",
        "Engine",
        "Engine.start",
        "ExecutionInfo.status",
        "testing.replay.replay",
        "errors.StoreOwned",
    ):
        assert f'id="holdfast.{name}"' in page
    assert 'id="holdfast.Workflow.make_program"' not in page
