"""The first program on the page about payloads runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs/payloads.md").read_text()


def test_program_on_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    program, expected = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)\n```", PAGE, re.DOTALL)[0]
    file = tmp_path / "program.py"
    file.write_text(program)

    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stdout.strip() == expected, done.stderr
