from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from holdfast.store import sqlite
from holdfast.store.listing import Lead
from holdfast.store.queries import load_queries, widen

SQLITE = Path(sqlite.__file__).parent


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that has a queries.sql to write."""
    folder = tmp_path / "some_store"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_store", raising=False)
    return folder


PROBES = ("probe_prefix", "probe_closed")


def test_statements_are_found_by_name_and_without_comments(package: Path) -> None:
    (package / "queries.sql").write_text(
        "-- What this is.\n\n-- name: one\n-- Why it is so.\nSELECT 1\n  FROM a;\n\n-- name: two\nDELETE FROM b\n"
    )

    assert load_queries("some_store") == {"one": "SELECT 1\n  FROM a", "two": "DELETE FROM b"}


def test_statements_of_topics_that_are_split_off_belong_to_the_file(package: Path) -> None:
    (package / "queries.sql").write_text("-- name: one\nSELECT 1;\n")
    (package / "queries_writes.sql").write_text("-- name: two\nDELETE FROM b;\n")
    (package / "transfer.sql").write_text("-- name: three\nSELECT 3;\n")

    assert load_queries("some_store") == {"one": "SELECT 1", "two": "DELETE FROM b"}


def test_a_name_that_is_there_in_two_files_is_refused(package: Path) -> None:
    (package / "queries.sql").write_text("-- name: one\nSELECT 1;\n")
    (package / "queries_writes.sql").write_text("-- name: one\nSELECT 2;\n")

    with pytest.raises(ValueError, match=r"once in queries_writes\.sql, but 'one' is there twice"):
        load_queries("some_store")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n", "'one' is there twice"), ("SELECT 1;\n", "before the first")],
)
def test_a_file_that_is_no_list_of_statements_is_refused(package: Path, text: str, reason: str) -> None:
    (package / "queries.sql").write_text(text)

    with pytest.raises(ValueError, match=reason):
        load_queries("some_store")


def test_a_statement_is_widened_to_many_rows() -> None:
    assert widen("INSERT INTO a VALUES (?, ?) ON CONFLICT", 3) == "INSERT INTO a VALUES (?, ?), (?, ?), (?, ?) ON CONFLICT"


@pytest.mark.parametrize("statement", ["SELECT 1", "INSERT INTO a VALUES (1, ?)", "VALUES (?) VALUES (?)"])
def test_a_statement_without_one_list_of_values_cannot_be_widened(statement: str) -> None:
    with pytest.raises(ValueError, match="Expected one VALUES"):
        widen(statement, 2)


def test_every_statement_of_the_sqlite_store_is_used_and_every_used_one_is_there() -> None:
    code = "\n".join(file.read_text() for file in SQLITE.glob("*.py"))

    named = set(re.findall(r'(?:SQL\[|WideStatement\(|_connect\(path, "r[ow]", |CommitEvidence\()"(\w+)"', code))
    named |= {*Lead, *(lead.walk_end for lead in Lead if lead.walk_end), *PROBES}

    assert named == set(load_queries("holdfast.store.sqlite"))


def test_sql_is_written_in_sql_files_only() -> None:
    code = "\n".join(file.read_text() for file in SQLITE.glob("*.py"))

    assert re.findall(r'"\s*(?:SELECT|INSERT|UPDATE|DELETE|PRAGMA|CREATE|WITH)\b.*', code) == []
