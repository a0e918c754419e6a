"""Texts of a drawing: how wide they are about, where they break, and how they are written into XML.

No font is at hand, so widths are those of Arial and Helvetica, which most generic sans-serif fonts come close to.
"""

from __future__ import annotations

import unicodedata
from typing import Final

FONT_SIZE: Final = 12.0
LINE_HEIGHT: Final = 14.0
ELLIPSIS: Final = "…"

_NARROW: Final = "iljI|.,:;'!`"
_WIDTHS: Final[dict[str, float]] = {
    **dict.fromkeys(_NARROW, 0.26),
    **dict.fromkeys(' ftr()[]{}/\\-"*', 0.34),
    **dict.fromkeys("ckszJvxy", 0.5),
    **dict.fromkeys("ABEKPSVXY&", 0.67),
    **dict.fromkeys("CDHNRUw", 0.72),
    **dict.fromkeys("GOQ", 0.78),
    **dict.fromkeys("Mm", 0.84),
    **dict.fromkeys("W@%", 0.95),
}
_USUAL: Final = 0.56
_BREAKS_AFTER: Final = "-_/.,;:"
LONGEST: Final = 2000
"""Characters of a text that are looked at: no label has room for more."""


def clean(text: str) -> str:
    """A text without what XML cannot hold: control characters, lone surrogates and characters that stand for none."""
    return "".join(
        one
        if one in "\t\n" or (one >= " " and unicodedata.category(one) not in ("Cc", "Cs") and one not in "\ufffe\uffff")
        else " "
        for one in text.replace("\r\n", "\n").replace("\r", "\n")
    )


def escape(text: str) -> str:
    """A text as it stands in XML, within an element or an attribute."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;").replace("\n", "&#10;").replace("\t", "&#9;")


def measure(text: str, size: float = FONT_SIZE) -> float:
    """About how wide a line of text is."""
    return sum(_measure_character(one) for one in text) * size


def _measure_character(one: str) -> float:
    if one < "\x7f":
        return _WIDTHS.get(one, _USUAL)
    if unicodedata.combining(one):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(one) in "WF" else 0.6


def wrap(text: str, width: float, most: int, size: float = FONT_SIZE) -> list[str]:
    """The lines of a text, none wider than `width` and at most `most`; what is left out is told by an ellipsis."""
    lines: list[str] = []
    cut = clean(text[:LONGEST]).strip()
    for paragraph in cut.split("\n"):
        _wrap_paragraph(paragraph, width, size, lines)
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) > most:
        lines = lines[:most]
        lines[-1] = _shorten(lines[-1], width, size)
    return lines


def _wrap_paragraph(paragraph: str, width: float, size: float, lines: list[str]) -> None:
    line = ""
    for word in paragraph.split():
        joined = f"{line} {word}" if line else word
        if measure(joined, size) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while measure(line, size) > width and len(line) > 1:
            head = _find_break(line, width, size)
            lines.append(line[:head])
            line = line[head:]
    lines.append(line)


def _find_break(word: str, width: float, size: float) -> int:
    """How much of a word that is too long fits; behind a sign such as a dash where there is one, else anywhere."""
    used, fits, nice = 0.0, 1, 0
    for position, one in enumerate(word):
        used += _measure_character(one) * size
        if used > width and position:
            break
        fits = position + 1
        if one in _BREAKS_AFTER or (position + 1 < len(word) and one.islower() and word[position + 1].isupper()):
            nice = position + 1
    return nice if nice * 2 >= fits else fits


def _shorten(line: str, width: float, size: float) -> str:
    while line and measure(line + ELLIPSIS, size) > width:
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def measure_lines(lines: list[str], size: float = FONT_SIZE) -> float:
    """About how wide the widest of some lines is."""
    return max((measure(line, size) for line in lines), default=0.0)
