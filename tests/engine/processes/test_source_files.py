"""The files of a deployment, as callers give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.processes.source_files import MOST_FILES, collect_files, to_text
from holdfast.errors import HoldfastError, InvalidArguments


def test_a_path_several_paths_and_contents_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.bpmn"
    path.write_bytes(b"<a/>")
    other = tmp_path / "b.dmn"
    other.write_bytes(b"<b/>")

    one = collect_files(path)
    both = collect_files([str(path), other])
    given = collect_files({"a.bpmn": "<a/>", "b.form": b"{}"})

    assert [(file.name, file.data) for file in one] == [("a.bpmn", b"<a/>")]
    assert [(file.name, file.kind.value) for file in both] == [("a.bpmn", "bpmn"), ("b.dmn", "dmn")]
    assert [(file.name, file.data) for file in given] == [("a.bpmn", b"<a/>"), ("b.form", b"{}")]


def test_files_of_one_name_in_two_folders_keep_their_paths(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.bpmn").write_bytes(folder.encode())

    found = collect_files([tmp_path / "one" / "a.bpmn", tmp_path / "two" / "a.bpmn"])

    assert [file.data for file in found] == [b"one", b"two"]
    assert len({file.name for file in found}) == 2


@pytest.mark.parametrize(
    "files",
    [
        {},
        [],
        b"<a/>",
        7,
        [7],
        {"a.txt": b""},
        {"": b""},
        {"a\n.bpmn": b""},
        {"a.bpmn": 7},
        {7: b""},
        "missing.bpmn",
        "a\0.bpmn",
        {f"{number}.bpmn": b"" for number in range(MOST_FILES + 1)},
        {"a.bpmn": "data:application/octet-stream;base64,?"},
    ],
)
def test_what_is_no_file_is_refused(files: Any) -> None:
    with pytest.raises((InvalidArguments, HoldfastError), match="Expected"):
        collect_files(files)


@pytest.mark.parametrize("data", [b"<a/>", "ü".encode("utf-16"), b"\xff\xfe\x00", b""])
def test_a_text_gives_the_same_bytes_back(data: bytes) -> None:
    (file,) = collect_files({"a.bpmn": data})

    assert collect_files({"a.bpmn": to_text(file)}) == [file]
