"""`python -m bench [name …]`: runs the benchmarks named, or all but the long ones."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "limit",
    "timers",
    "memory",
    "growth",
    "chains",
    "postgres_limit",
    "postgres_timers",
    "postgres_nodes",
    "postgres_size",
    "feel",
    "lists",
    "schedules",
    "updates",
    "waits",
    "broadcasts",
    "processes",
    "peers",
)
LONG_NAMES = ("soak",)
"""Those that run for many minutes, only by name."""


def main() -> int:
    """Run the chosen benchmarks one after the other; returns the exit code."""
    names = sys.argv[1:] or list(NAMES)
    unknown = [name for name in names if name not in NAMES + LONG_NAMES]
    if unknown:
        sys.stderr.write(f"Expected names among {', '.join(NAMES + LONG_NAMES)}, but found {', '.join(unknown)}.\n")
        return 2
    for name in names:
        importlib.import_module(f"bench.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
