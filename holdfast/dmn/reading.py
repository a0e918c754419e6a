"""From text to the XML elements of a decision model, for files that nobody vouches for."""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.dmn.problems import refuse
from holdfast.safe_xml import XmlLimits, XmlRefused, parse_xml

MOST_BYTES: Final = 10_000_000
DEEPEST: Final = 200
"""Elements inside each other."""
MOST_ELEMENTS: Final = 2_000_000
LIMITS: Final = XmlLimits(bytes=MOST_BYTES, depth=DEEPEST, elements=MOST_ELEMENTS)


def read_xml(xml: str | bytes) -> etree._Element:
    """The root element, without comments and processing instructions. Raises DmnError if there is none that may be read."""
    if not isinstance(xml, str | bytes | bytearray):
        raise refuse(f"Expected the XML of a decision model as str or bytes, but got {type(xml).__name__}. Give its text.")
    if not xml.strip():
        raise refuse("Expected the XML of a decision model, but the text is empty. Give the content of a .dmn file.")
    try:
        return parse_xml(xml, LIMITS)
    except XmlRefused as refused:
        raise refuse(str(refused)) from None
