"""From text to XML elements, for files that nobody vouches for: no DTD, no entities, no network, bounded size and depth."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENCODINGS: Final = frozenset(
    (
        *("utf-8", "utf8", "us-ascii", "ascii", "gb18030", "gb2312", "gbk"),
        *("iso-8859-1", "latin-1", "iso-8859-2", "iso-8859-15"),
        *("windows-1250", "windows-1251", "windows-1252", "cp1252"),
    )
)
"""Those with ASCII in them, so that the declaration itself can be read; UTF-16 has to begin with a byte order mark."""
_DECLARED: Final = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_DECLARATION: Final = re.compile(r"^\s*<\?xml\s[^>]*\?>")
_NOT_YET_ROOT: Final = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)
_TAG: Final = re.compile(r"<[^\s<>/!?][^<]*")
"""A start tag and what follows it up to the next tag: the value of an attribute cannot hold a '<'."""
_ATTRIBUTE: Final = re.compile(r"""\s*[^\s<>"'/=]+\s*=\s*(?:"[^"<]*"|'[^'<]*')""")
_ELEMENT_NAME: Final = re.compile(r"<[^\s<>/]+")
_TOO_DEEP: Final = "Excessive depth"
"""How libxml2's message begins for elements more than 256 deep."""
_TOO_LONG: Final = re.compile(r"XML_PARSE_HUGE|\btoo (?:big|long)\b|\bhuge\b", re.IGNORECASE)
"""In libxml2's messages about its own bounds, whose remedy is an option that nobody here can set."""


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """How large an XML file may be."""

    bytes: int
    depth: int
    """Elements inside each other."""
    elements: int
    attributes: int = 1_000
    """Of one element. lxml takes time that grows with their square to list them."""


class XmlRefused(Exception):
    """A text is not XML, or not of the kind that may be read."""

    def __init__(self, found: str, remedy: str, line: int = 0) -> None:
        super().__init__(f"{found} {remedy}")
        self.found = found
        """What was expected and what there is, as a sentence."""
        self.remedy = remedy
        self.line = line
        """Where in the text; 0 if it is about the whole."""


def parse_xml(xml: str | bytes, limits: XmlLimits) -> etree._Element:
    """The root element, without comments and processing instructions. Raises XmlRefused if there is none to be read."""
    text = _decode(xml, limits)
    if not text.strip():
        raise XmlRefused("Expected XML, but the text is empty.", "Give the content of the file.")
    _refuse_doctype(text)
    _check_elements(text, limits)
    _check_attributes(text, limits)
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
    except etree.XMLSyntaxError as error:
        raise _make_refusal(error, limits) from None
    except UnicodeEncodeError:
        raise XmlRefused(
            "Expected well-formed XML, but it is not: it has characters that Unicode does not know.",
            "Fix the file or export it again.",
        ) from None
    _check_depth(root, limits)
    return root


def line_of(element: etree._Element) -> int:
    """The line in which an element begins; 0 if it was not read from a text."""
    line: Any = element.sourceline
    return line or 0


def _decode(xml: str | bytes, limits: XmlLimits) -> str:
    if len(xml) > limits.bytes:
        raise XmlRefused(f"Expected a file of at most {limits.bytes:,} bytes, but it has {len(xml):,}.", "Split the model.")
    if isinstance(xml, str):
        return xml.removeprefix("\ufeff")
    encoding, start = _find_encoding(xml)
    try:
        return bytes(xml[start:]).decode(encoding)
    except UnicodeDecodeError as error:
        at = error.start + start
        raise XmlRefused(
            f"Expected text in {encoding}, but byte {at} is none.", "Save the file as UTF-8.", xml.count(b"\n", 0, at) + 1
        ) from None


def _find_encoding(xml: bytes | bytearray) -> tuple[str, int]:
    """The encoding, and where the text begins."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if xml.startswith(mark):
            return encoding, len(mark)
    found = _DECLARED.match(xml[:200])
    encoding = found.group(1).decode().lower() if found else "utf-8"
    if encoding not in _ENCODINGS:
        raise XmlRefused(f"Expected a file in UTF-8, but it says that it is in {encoding!r}.", "Save it as UTF-8.", 1)
    return encoding, 0


def _refuse_doctype(text: str) -> None:
    """A DTD may only stand before the root element."""
    at = 0
    while (found := _NOT_YET_ROOT.match(text, at)) is not None:
        at = found.end()
    if text.startswith("<!DOCTYPE", at):
        raise XmlRefused(
            "Expected XML without a document type, but the file has a DOCTYPE, which could make it read other files or grow "
            "without end.",
            "Take it out: the format needs none.",
            text.count("\n", 0, at) + 1,
        )


def _check_elements(text: str, limits: XmlLimits) -> None:
    """Before the tree is built, which takes a hundred bytes for each element. Comments and the like count too."""
    count = text.count("<") - text.count("</")
    if count > limits.elements:
        raise XmlRefused(
            f"Expected at most {limits.elements:,} elements, but there are about {count:,}.", "Split the model."
        )


def _check_attributes(text: str, limits: XmlLimits) -> None:
    """Before the tree is built, so that nothing ever asks such an element. Declarations of namespaces count too."""
    for tag in _TAG.finditer(text):
        most = text.count("=", tag.start(), tag.end())  # also those in values, and in the text that follows
        if most > limits.attributes and (count := _count_attributes(tag.group())) > limits.attributes:
            line = text.count("\n", 0, tag.start()) + 1
            raise XmlRefused(
                f"Expected at most {limits.attributes:,} attributes of one element, but that in line {line} has {count:,}.",
                "Keep them in elements of their own, or outside of the model.",
                line,
            )


def _count_attributes(tag: str) -> int:
    name = _ELEMENT_NAME.match(tag)
    at = 0 if name is None else name.end()
    count = 0
    while (found := _ATTRIBUTE.match(tag, at)) is not None:
        at = found.end()
        count += 1
    return count


def _make_refusal(error: etree.XMLSyntaxError, limits: XmlLimits) -> XmlRefused:
    """What libxml2 found, in our words where it is about a bound of its own."""
    line, column = error.position
    message = str(error.msg)
    if message.startswith(_TOO_DEEP):
        return _make_too_deep(limits, line)
    if _TOO_LONG.search(message):
        return XmlRefused(
            "Expected names of at most 50,000 bytes, and texts and attributes of at most 10,000,000, but there is a "
            f"longer one (line {line}, column {column}).",
            "Shorten it, or keep it outside of the model.",
            line,
        )
    reason = message.split(", line ", maxsplit=1)[0]
    return XmlRefused(
        f"Expected well-formed XML, but it is not: {reason} (line {line}, column {column}).",
        "Fix the file or export it again.",
        line,
    )


def _keep_lines(declaration: re.Match[str]) -> str:
    """The text is decoded already, so its declaration goes; the numbers of lines stay."""
    return "\n" * declaration.group().count("\n")


def _check_depth(root: etree._Element, limits: XmlLimits) -> None:
    level = [root]
    for _ in range(limits.depth):
        level = [child for element in level for child in element]
        if not level:
            return
    raise _make_too_deep(limits, line_of(level[0]))


def _make_too_deep(limits: XmlLimits, line: int) -> XmlRefused:
    return XmlRefused(
        f"Expected elements at most {limits.depth} deep inside each other, but they are deeper.",
        "Take the model apart.",
        line,
    )
