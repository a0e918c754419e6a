"""The npm package feelin, installed once outside the repository and asked by lines of JSON."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
FILES: Final = ("package.json", "package-lock.json", "driver.mjs")
UNREACHABLE: Final = re.compile("E(NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|RR_SOCKET_TIMEOUT)")
"""What npm says where there is no network."""


class Missing(Exception):
    """feelin cannot be had on this machine, for a reason that is no fault of ours."""


def install() -> Path:
    """The folder with the driver and all that it needs. Downloads at most once. Raises Missing.

    The folder is named after what is in it, and appears whole or not at all: several processes may ask for it at once.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise Missing("node and npm are not on this machine")
    content = b"".join((HERE / name).read_bytes() for name in FILES)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "holdfast-tests"
    folder = cache / f"feelin-{hashlib.sha256(content).hexdigest()[:16]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as making:
            fill(npm, Path(making) / "feelin", folder)
    return folder


def fill(npm: str, making: Path, folder: Path) -> None:
    """Install into a folder of its own, then give it its name, unless another process was faster."""
    making.mkdir()
    for name in FILES:
        shutil.copy(HERE / name, making)
    command = [
        npm,
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
    ]
    done = subprocess.run(command, cwd=making, capture_output=True, text=True, check=False, timeout=300)
    if unreachable := UNREACHABLE.search(done.stderr):
        raise Missing(f"npm cannot reach its registry ({unreachable[0]})")
    if done.returncode != 0:
        raise RuntimeError(f"Expected `npm ci` to install feelin, but it ended with {done.returncode}:\n{done.stderr}")
    try:
        making.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def ask(folder: Path, questions: Iterable[Mapping[str, Any]], timeout: float = 120) -> list[dict[str, Any]]:
    """What feelin answers to each question, in their order; `driver.mjs` says what a question is."""
    lines = "".join(f"{json.dumps(question)}\n" for question in questions)
    done = subprocess.run(
        ["node", "driver.mjs"], cwd=folder, input=lines, capture_output=True, text=True, check=True, timeout=timeout
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
