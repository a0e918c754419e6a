"""What the texts of a file mean: FEEL, JUEL or themselves. Which of them depends on where a text stands.

- Attributes of Camunda 8 are FEEL behind a `=`, and themselves without one.
- Attributes and elements of Camunda 7 are JUEL where they have a `${…}` or `#{…}`, and themselves otherwise.
- Conditions and counts of BPMN itself are always to be evaluated: JUEL with a `${…}`, else FEEL, with or without a `=`. What
  only Java would write there (`test.contains("a")`, `a && b`) is read as JUEL too.
- Times of BPMN itself are themselves (`PT5M`), unless a `=` or a `${…}` says that they have to be evaluated.
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from holdfast.bpmn.model import Expression, TimerKind
from holdfast.bpmn.reading.documents import Document, text_of
from holdfast.bpmn.reading.juel import JuelError, has_juel, looks_like_juel, translate_expression, translate_text
from holdfast.bpmn.reading.times import normalize_time
from holdfast.safe_xml import line_of

_FEEL: Final = (
    "feel",
    "juel",
    "http://www.omg.org/spec/feel/",
    "https://www.omg.org/spec/feel/",
    "https://www.omg.org/spec/dmn/",
)
_UNSAID: Final = frozenset(
    ("", "http://www.w3.org/1999/xpath", "http://www.w3.org/tr/xpath", "http://www.java.com/javatypes")
)
"""Languages that tools write into each file without meaning them."""


def read_marked(text: str, line: int) -> Expression:
    """FEEL behind a `=`, else the text itself: the rule of Camunda 8."""
    stripped = text.strip()
    if stripped.startswith("="):
        return Expression(text=stripped[1:].strip(), source=text, line=line)
    return Expression(text=text, is_static=True, line=line)


def read_feel(text: str, line: int) -> Expression:
    """FEEL, with or without a `=`."""
    stripped = text.strip()
    if stripped.startswith("=") and not stripped.startswith("=="):
        return Expression(text=stripped[1:].strip(), source=text, line=line)
    return Expression(text=stripped, line=line)


def read_juel(document: Document, element: etree._Element, text: str) -> Expression:
    """JUEL, or the text itself where there is no `${…}`: the rule of Camunda 7. What cannot be translated is a problem."""
    line = line_of(element)
    if not has_juel(text):
        return Expression(text=text, is_static=True, line=line)
    return Expression(text=_translate(document, element, text), source=text, line=line)


def read_condition(document: Document, element: etree._Element | None) -> Expression | None:
    """The text of an element of BPMN itself that has to be evaluated; None if there is none."""
    text = _read_text(document, element)
    if element is None or text is None:
        return None
    line = line_of(element)
    if has_juel(text) and not text.startswith("="):
        return Expression(text=_translate(document, element, text), source=text, line=line)
    if not text.startswith("=") and looks_like_juel(text):
        try:
            return Expression(text=translate_expression(text), source=text, line=line)
        except JuelError:
            pass  # It is FEEL then, or a problem of FEEL.
    return read_feel(text, line)


def read_time(document: Document, element: etree._Element, kind: TimerKind) -> Expression | None:
    """When a timer of BPMN itself fires; None if nothing is said."""
    text = _read_text(document, element)
    if text is None:
        return None
    if has_juel(text) and not text.startswith("="):
        return Expression(text=_translate(document, element, text), source=text, line=line_of(element))
    if text.startswith("="):
        return read_marked(text, line_of(element))
    normal = normalize_time(kind, text, is_quartz=document.is_camunda7)
    return Expression(text=normal, is_static=True, source="" if normal == text else text, line=line_of(element))


def _read_text(document: Document, element: etree._Element | None) -> str | None:
    if element is None:
        return None
    language = element.get("language", "").strip().lower()
    if language not in _UNSAID and not language.startswith(_FEEL):
        document.report(
            element,
            "expression-language",
            f"Expected an expression in FEEL, but its language is {element.get('language', '')[:80]!r}.",
            "Write it in FEEL with a leading '='.",
        )
    return text_of(element) or None


def _translate(document: Document, element: etree._Element, text: str) -> str:
    try:
        return translate_text(text)
    except JuelError as error:
        document.report(element, "juel", error.found, error.remedy)
        return "null"
