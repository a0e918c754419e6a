"""From text to XML elements, for files that nobody vouches for: no DTD, no entities, no network, bounded size and depth."""

from __future__ import annotations

import codecs
import re
from typing import Final

from lxml import etree

from holdfast.dmn.problems import refuse

MOST_BYTES: Final = 10_000_000
DEEPEST: Final = 200
"""Elements inside each other."""

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENCODINGS: Final = frozenset(("utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252", "cp1252"))
"""Those with ASCII in them, so that the declaration itself can be read; UTF-16 has to begin with a byte order mark."""
_DECLARED: Final = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_DECLARATION: Final = re.compile(r"^\s*<\?xml\s[^>]*\?>")
_NOT_YET_ROOT: Final = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)


def read_xml(xml: str | bytes) -> etree._Element:
    """The root element, without comments and processing instructions. Raises DmnError if there is none that may be read."""
    text = _decode(xml)
    if not text.strip():
        raise refuse("Expected the XML of a decision model, but the text is empty. Give the content of a .dmn file.")
    _refuse_doctype(text)
    # Comments and entities cannot hide anything in here any more; the switches are for the day when libxml2 gets new ones.
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(_DECLARATION.sub(_keep_lines, text, count=1).encode(), parser)
    except (etree.XMLSyntaxError, UnicodeEncodeError) as error:
        raise refuse(f"Expected well-formed XML, but it is not: {_tell(error)}. Fix the file or export it again.") from None
    _check_depth(root)
    return root


def _decode(xml: str | bytes) -> str:
    if not isinstance(xml, str | bytes | bytearray):
        raise refuse(f"Expected the XML of a decision model as str or bytes, but got {type(xml).__name__}. Give its text.")
    if len(xml) > MOST_BYTES:
        raise refuse(f"Expected a file of at most {MOST_BYTES:,} bytes, but it has {len(xml):,}. Split the model.")
    if isinstance(xml, str):
        return xml.removeprefix("\ufeff")
    encoding, start = _find_encoding(xml)
    try:
        return bytes(xml[start:]).decode(encoding)
    except UnicodeDecodeError as error:
        raise refuse(
            f"Expected text in {encoding}, but byte {error.start + start} is none. Save the file as UTF-8."
        ) from None


def _find_encoding(xml: bytes | bytearray) -> tuple[str, int]:
    """The encoding, and where the text begins."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if xml.startswith(mark):
            return encoding, len(mark)
    found = _DECLARED.match(xml[:200])
    encoding = found.group(1).decode().lower() if found else "utf-8"
    if encoding not in _ENCODINGS:
        raise refuse(f"Expected a file in UTF-8, but it says that it is in {encoding!r}. Save it as UTF-8.")
    return encoding, 0


def _refuse_doctype(text: str) -> None:
    """A DTD may only stand before the root element."""
    at = 0
    while (found := _NOT_YET_ROOT.match(text, at)) is not None:
        at = found.end()
    if text.startswith("<!DOCTYPE", at):
        raise refuse(
            "Expected XML without a document type, but the file has a DOCTYPE, which could make it read other files or grow "
            "without end. Take it out: DMN needs none."
        )


def _keep_lines(declaration: re.Match[str]) -> str:
    """The text is decoded already, so its declaration goes; the numbers of lines stay."""
    return "\n" * declaration.group().count("\n")


def _check_depth(root: etree._Element) -> None:
    level = [root]
    for _ in range(DEEPEST):
        level = [child for element in level for child in element]
        if not level:
            return
    raise refuse(f"Expected elements at most {DEEPEST} deep inside each other, but they are deeper. Take the model apart.")


def _tell(error: Exception) -> str:
    if isinstance(error, etree.XMLSyntaxError):
        line, column = error.position
        return f"{str(error.msg).split(', line ', maxsplit=1)[0]} (line {line}, column {column})"
    return "it has characters that Unicode does not know"
