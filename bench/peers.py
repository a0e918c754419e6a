"""Side by side with other engines, by the harness that `HOLDFAST_BENCH_HARNESS` names; one run, medians and ratios."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.measuring import report

RUNS = {
    "dbos-sqlite": ["dbos-sqlite", "restate", "holdfast-sqlite"],
    "dbos-pg": ["dbos-pg", "absurd", "holdfast-pg"],
}
"""By what they are compared with."""
WORKLOADS = ["W1", "W2", "W3", "W4", "W5", "W6", "W8"]


def run() -> None:
    """Run the harness's comparison with this project's adapter, on the harness's own interpreter."""
    harness = os.environ.get("HOLDFAST_BENCH_HARNESS")
    if not harness:
        report("peers", skipped="set HOLDFAST_BENCH_HARNESS to the harness's folder, and BENCH_HOME to its environment")
        return
    project = Path(__file__).resolve().parent.parent
    python = Path(os.environ.get("BENCH_HOME", "~/.cache/wf-bench")).expanduser() / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{project}[postgres]"], check=True)
    environment = os.environ | {"BENCH_ADAPTER": str(project / "bench/adapter.py")}
    sys.stdout.flush()
    for base, peers in RUNS.items():
        command = [str(python), "compare.py", "--base", base, "--runs", "3", "--peers", *peers, "--workloads", *WORKLOADS]
        subprocess.run(command, cwd=harness, env=environment, check=True)
