"""What a URL says: where the server is, which schema is ours, and how it is reached."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from holdfast.errors import InvalidConfiguration
from holdfast.store.postgres.statements import DEFAULT_SCHEMA

SCHEMES: Final = ("postgresql", "postgres")
_LONGEST_NAME: Final = 63
_DEFAULT_TRANSACTIONS: Final = 3
_MOST_TRANSACTIONS: Final = 32


class DatabaseAddress(msgspec.Struct, frozen=True):
    """A schema in a database on a server, and how it is reached."""

    dsn: str
    """As the driver takes it, password and all: never to be shown."""
    shown: str
    """The same for people, without a password."""
    schema: str = DEFAULT_SCHEMA
    is_pooled: bool = False
    """Whether a pooler in transaction mode stands between: nothing may rest on a session."""
    wakeups: str | None = None
    """The URL of a Redis that carries wake-ups instead of LISTEN and NOTIFY."""
    max_transactions: int = _DEFAULT_TRANSACTIONS
    """How many batches are under way at once."""


def parse_url(url: str) -> DatabaseAddress:
    """Read `postgresql://user:password@host:port/database?schema=holdfast`. Raises InvalidConfiguration.

    Beside what the driver knows (`sslmode`, `host` for a socket's folder, …): `schema`, `pooler=transaction`,
    `wakeups=redis://…`, `max_transactions` (or its older name `lanes`).
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text may hold a part of the password
        raise _refused("its host or port cannot be read; write what is special in a password as %40 and the like") from None
    if parts.scheme not in SCHEMES:
        raise _refused(f"it begins with '{parts.scheme}:'")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    address = DatabaseAddress(
        dsn="",
        shown=_show(parts.hostname or options.get("host") or "localhost", port, parts.path),
        schema=_check_schema(options.pop("schema", DEFAULT_SCHEMA)),
        is_pooled=_choose_pooler(options.pop("pooler", "")),
        wakeups=_check_wakeups(options.pop("wakeups", None)),
        max_transactions=_read_max_transactions(options),
    )
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    dsn = f"postgresql://{parts.netloc}{parts.path}{query}"
    return msgspec.structs.replace(address, dsn=dsn)


def _show(host: str, port: int | None, path: str) -> str:
    return f"postgresql://{host}{f':{port}' if port else ''}{path}"


def _check_schema(name: str) -> str:
    if not name or len(name.encode()) > _LONGEST_NAME or "\0" in name or name.startswith("pg_"):
        raise _refused(f"its schema is {name!r}, which PostgreSQL does not take")
    return name


def _choose_pooler(mode: str) -> bool:
    if mode not in ("", "transaction", "session"):
        raise _refused(f"pooler={mode!r} is neither 'transaction' nor 'session'")
    return mode == "transaction"


def _check_wakeups(url: str | None) -> str | None:
    if url is not None and urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise _refused("wakeups=… is no URL of a Redis")
    return url


def _read_max_transactions(options: dict[str, str]) -> int:
    """Take the number of batches under way out of the options; a URL of an older Holdfast calls it `lanes`."""
    found = _DEFAULT_TRANSACTIONS
    for name in ("lanes", "max_transactions"):
        text = options.pop(name, None)
        if text is None:
            continue
        if not text.isdecimal() or not 1 <= int(text) <= _MOST_TRANSACTIONS:
            raise _refused(f"{name}={text!r} is no number from 1 to {_MOST_TRANSACTIONS}")
        found = int(text)
    return found


def _refused(why: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"Expected a URL like 'postgresql://user@host/database?schema=holdfast', but {why}. Correct the URL."
    )
