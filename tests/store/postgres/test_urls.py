"""What a URL may say, and how it is refused: never with the password in the message."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidConfiguration
from holdfast.store.postgres.urls import DatabaseAddress, parse_url

GOOD = {
    "postgresql://u:secret@h:5433/d": DatabaseAddress("postgresql://u:secret@h:5433/d", "postgresql://h:5433/d"),
    "postgres://u@h/d": DatabaseAddress("postgresql://u@h/d", "postgresql://h/d"),
    "postgresql:///d": DatabaseAddress("postgresql:///d", "postgresql://localhost/d"),
    "postgresql:///d?host=/var/run": DatabaseAddress("postgresql:///d?host=%2Fvar%2Frun", "postgresql:///var/run/d"),
    "postgresql://h/d?schema=mine": DatabaseAddress("postgresql://h/d", "postgresql://h/d", schema="mine"),
    "postgresql://h/d?sslmode=require&schema=x": DatabaseAddress(
        "postgresql://h/d?sslmode=require", "postgresql://h/d", schema="x"
    ),
    "postgresql://h/d?pooler=transaction": DatabaseAddress("postgresql://h/d", "postgresql://h/d", is_pooled=True),
    "postgresql://h/d?pooler=session": DatabaseAddress("postgresql://h/d", "postgresql://h/d"),
    "postgresql://h/d?wakeups=redis://r:6379/0": DatabaseAddress(
        "postgresql://h/d", "postgresql://h/d", wakeups="redis://r:6379/0"
    ),
    "postgresql://h/d?max_transactions=2": DatabaseAddress("postgresql://h/d", "postgresql://h/d", max_transactions=2),
    "postgresql://h/d?max_transactions=2&lanes=1": DatabaseAddress(
        "postgresql://h/d", "postgresql://h/d", max_transactions=2
    ),
    "postgresql://h/d?lanes=1": DatabaseAddress("postgresql://h/d", "postgresql://h/d", max_transactions=1),
    "postgresql://h/d?lanes=32": DatabaseAddress("postgresql://h/d", "postgresql://h/d", max_transactions=32),
}

BAD = {
    "mysql://h/d": "it begins with 'mysql:'",
    "postgresql+asyncpg://h/d": "it begins with 'postgresql+asyncpg:'",
    "postgresql://u:secret@h:port/d": "its host or port cannot be read",
    "postgresql://u:secret@h:99999/d": "its host or port cannot be read",
    "postgresql://u:sec#ret@h/d": "write what is special in a password as %40 and the like",
    "postgresql://u:secret@[h/d": "its host or port cannot be read",
    "postgresql://h/d?schema=": "its schema is ''",
    "postgresql://h/d?schema=pg_mine": "its schema is 'pg_mine'",
    f"postgresql://h/d?schema={'ä' * 32}": "which PostgreSQL does not take",
    "postgresql://h/d?pooler=statement": "pooler='statement' is neither",
    "postgresql://h/d?wakeups=http://r": "wakeups=… is no URL of a Redis",
    "postgresql://h/d?max_transactions=0": "max_transactions='0' is no number from 1 to 32",
    "postgresql://h/d?lanes=0": "lanes='0' is no number from 1 to 32",
    "postgresql://h/d?lanes=33": "lanes='33' is no number",
    "postgresql://h/d?lanes=many": "lanes='many' is no number",
    "postgresql://h/d?lanes=²": "lanes='²' is no number",
}


@pytest.mark.parametrize("url", GOOD)
def test_url_says_where_and_how(url: str) -> None:
    assert parse_url(url) == GOOD[url]


@pytest.mark.parametrize("url", BAD)
def test_url_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_url(url)

    assert BAD[url] in caught.value.message
    assert caught.value.message.startswith("Expected a URL like 'postgresql://user@host/database?schema=holdfast', but")
    assert caught.value.message.endswith("Correct the URL.")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("url", [url for url in GOOD if "secret" in url])
def test_password_is_not_shown(url: str) -> None:
    assert "secret" not in parse_url(url).shown
