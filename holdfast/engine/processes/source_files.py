"""The files of a deployment, as a caller gives them: paths, or names with their bytes."""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from holdfast.errors import InvalidArguments, PayloadTooLarge
from holdfast.store.definitions import DefinitionKind

MOST_FILES: Final = 500
MOST_BYTES: Final = 20_000_000
"""How large one file may be."""
MOST_BYTES_IN_ALL: Final = 100_000_000

Files: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str, bytes | str]"
"""What can be deployed: a path, several paths, or a dictionary from file names to their content."""

KINDS: Final[Mapping[str, DefinitionKind]] = {
    ".bpmn": DefinitionKind.BPMN,
    ".bpmn20.xml": DefinitionKind.BPMN,
    ".dmn": DefinitionKind.DMN,
    ".form": DefinitionKind.FORM,
    ".json": DefinitionKind.FORM,
}


class SourceFile(msgspec.Struct, frozen=True):
    """One file of a deployment, with its bytes."""

    name: str
    kind: DefinitionKind
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


def collect_files(files: Files) -> list[SourceFile]:
    """The files of a deployment, read from disk where paths are given. Raises InvalidArguments or PayloadTooLarge."""
    given = dict(files) if isinstance(files, Mapping) else _read_paths(files)
    if not given:
        raise InvalidArguments("Expected files to deploy, but there is none. Pass a path, several, or {name: bytes}.")
    if len(given) > MOST_FILES:
        raise InvalidArguments(
            f"Expected at most {MOST_FILES} files in one deployment, but there are {len(given)}. Deploy them in parts."
        )
    found = [_make_file(name, data) for name, data in given.items()]
    total = sum(len(one.data) for one in found)
    if total > MOST_BYTES_IN_ALL:
        raise PayloadTooLarge(
            f"Expected at most {MOST_BYTES_IN_ALL} bytes in one deployment, but there are {total}. Deploy them in parts."
        )
    return found


_AS_BASE64: Final = "data:application/octet-stream;base64,"
"""How the text of a file begins that is not written in UTF-8: no XML and no JSON begins so."""


def to_text(file: SourceFile) -> str:
    """A file as a text, from which `collect_files` makes the same bytes."""
    try:
        return file.data.decode("utf-8", "strict")
    except UnicodeDecodeError:
        return _AS_BASE64 + b64encode(file.data).decode()


def _from_text(text: str) -> bytes:
    if not text.startswith(_AS_BASE64):
        return text.encode("utf-8", "surrogatepass")
    try:
        return b64decode(text.removeprefix(_AS_BASE64), validate=True)
    except ValueError as error:
        raise InvalidArguments(f"Expected the content of a file in base64, but it is not: {error}. Pass bytes.") from error


def _read_paths(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> dict[str, bytes]:
    paths = [files] if isinstance(files, str | os.PathLike) else files
    if isinstance(files, bytes) or not isinstance(paths, Iterable):
        raise InvalidArguments(
            f"Expected a path, several paths, or {{name: bytes}}, but got {type(files).__name__}. "
            'Write deploy("order.bpmn"), or deploy({"order.bpmn": data}).'
        )
    found: dict[str, bytes] = {}
    for given in paths:
        if not isinstance(given, str | os.PathLike):
            raise InvalidArguments(f"Expected the path of a file, but got {type(given).__name__}. Pass a text or a Path.")
        path = Path(given)
        name = path.name if path.name not in found else str(path)
        if name in found:
            raise InvalidArguments(f"Expected each file once, but {str(path)!r} is there twice. Leave one out.")
        found[name] = _read(path)
    return found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)  # more is refused, and need not be read
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidArguments(f"Expected to read {str(path)!r}, but: {why}. Check the path.") from error
    except ValueError as error:  # NUL in the path
        raise InvalidArguments(f"Expected the path of a file, but {str(path)!r} cannot be one. Check the path.") from error


def _make_file(name: object, data: object) -> SourceFile:
    if not isinstance(name, str) or not name or not name.isprintable() or len(name.encode(errors="replace")) > 255:
        raise InvalidArguments(
            f"Expected the name of a file to be a text of at most 255 bytes, but it is {str(name)[:80]!r}. Rename it."
        )
    content = _from_text(data) if isinstance(data, str) else data
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidArguments(
            f"Expected the content of {name!r} as bytes, but got {type(data).__name__}. Read the file: path.read_bytes()."
        )
    if len(content) > MOST_BYTES:
        raise PayloadTooLarge(
            f"Expected {name!r} to have at most {MOST_BYTES} bytes, but it has more. Split it into several files."
        )
    kind = next((kind for ending, kind in KINDS.items() if name.lower().endswith(ending)), None)
    if kind is None:
        raise InvalidArguments(
            f"Expected a file that ends with {', '.join(KINDS)}, but it is {name!r}. Rename it, or leave it out."
        )
    return SourceFile(name, kind, bytes(content))
