"""Where the conformance suites of others are: nothing of them is part of the project.

They are read from the folder that the environment variable HOLDFAST_SUITES names, else from `shared/suites` beside the
checkout. Where there is neither, there are no cases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_BESIDE: Final = Path(__file__).resolve().parents[4] / "shared" / "suites"


def find_suite(name: str) -> Path | None:
    """The folder of a suite, such as `betsy`; None where it is not at hand."""
    named = os.environ.get("HOLDFAST_SUITES")
    folder = (Path(named) if named else _BESIDE) / name
    return folder if folder.is_dir() else None
