"""How a database is named in a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.errors import InvalidConfiguration

_PREFIX: Final = "sqlite:///"


def parse_url(url: str) -> Path:
    """The path that a URL such as `sqlite:///relative.db` names. Raises InvalidConfiguration for anything else."""
    if not url.startswith("sqlite:"):
        raise _invalid(url, "it does not begin with sqlite:")
    if not url.startswith(_PREFIX):
        raise _invalid(url, "it does not have three slashes after 'sqlite:', or names a host")
    name = url.removeprefix(_PREFIX)
    if not name:
        raise _invalid(url, "it names no file")
    if name == ":memory:":
        raise _invalid(url, "a database in memory is another store, named 'memory://'")
    if "?" in name or "#" in name:
        raise _invalid(url, "it has options, and there are none")
    if "\0" in name or name.endswith("/"):
        raise _invalid(url, "that is no name of a file")
    return Path(name)


def _invalid(url: str, reason: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"Expected the URL of an SQLite database, but {url!r} is none: {reason}. "
        "Write for instance 'sqlite:///app.db', or 'sqlite:////var/lib/app.db' with four slashes for an absolute path."
    )
