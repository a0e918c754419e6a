"""Functions of strings. DMN 10.3.4.3, and Camunda's additions. A character is a code point of Unicode."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from holdfast.feel import regexes
from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Value


def get_substring(run: Run, text: str, start: Decimal, length: Decimal | None = None) -> str:
    """So many characters from a position on, or all; positions count from 1, and from -1 backwards."""
    position = int(start)
    if position == 0:
        raise Fail("the start position is 0: the first position is 1, the last one is -1")
    if abs(position) > len(text):
        return ""
    first = position - 1 if position > 0 else len(text) + position
    rest = len(text) - first
    count = rest if length is None else min(max(int(length), 0), rest)
    run.check_text(count, text)
    return text[first : first + count]


def _count_characters(_run: Run, text: str) -> Decimal:
    return Decimal(len(text))


def _to_upper(run: Run, text: str) -> str:
    _check_case(run, text)
    return text.upper()


def _to_lower(run: Run, text: str) -> str:
    _check_case(run, text)
    return text.lower()


def _check_case(run: Run, text: str) -> None:
    """A character may become three: `ΐ` in capitals. Beyond ASCII, each is looked up."""
    if text.isascii():
        run.check_text(len(text))
    else:
        run.spend(len(text) >> 6)
        run.check_text(3 * len(text), text)


def _search(run: Run, text: str) -> None:
    """Before all of a text is searched, at worst."""
    run.spend(len(text) >> 8)


def _get_before(run: Run, text: str, match: str) -> str:
    _search(run, text)
    found = max(text.find(match), 0)
    run.check_text(found, text)
    return text[:found]


def _get_after(run: Run, text: str, match: str) -> str:
    _search(run, text)
    run.check_text(len(text), text)
    found = text.find(match)
    return "" if found < 0 else text[found + len(match) :]


def _contains(run: Run, text: str, match: str) -> bool:
    _search(run, text)
    return match in text


def _starts_with(run: Run, text: str, match: str) -> bool:
    run.check_compared(text, match)
    return text.startswith(match)


def _ends_with(run: Run, text: str, match: str) -> bool:
    run.check_compared(text, match)
    return text.endswith(match)


def _matches(run: Run, text: str, pattern: str, flags: str | None = None) -> bool:
    return regexes.matches(run, text, pattern, flags or "")


def _replace(run: Run, text: str, pattern: str, replacement: str, flags: str | None = None) -> str:
    return regexes.replace(run, text, pattern, replacement, flags or "")


def join(
    run: Run, items: list[Value], delimiter: str | None = None, prefix: str | None = None, suffix: str | None = None
) -> str:
    """The strings of a list one behind the other; nulls are left out. Raises Fail if there is anything else in the list."""
    run.spend(len(items))
    texts = [item for item in items if item is not None]
    for text in texts:
        if type(text) is not str:
            raise Fail("the list has something in it that is no string")
    between, before, behind = delimiter or "", prefix or "", suffix or ""
    run.check_text(
        sum(map(len, texts)) + len(between) * len(texts) + len(before) + len(behind), between, before, behind, *texts
    )
    return f"{before}{between.join(texts)}{behind}"


def _trim(run: Run, text: str) -> str:
    _search(run, text)
    run.check_text(len(text), text)
    return text.strip()


def _is_blank(run: Run, text: str) -> bool:
    _search(run, text)
    return not text or text.isspace()


def make_uuid(run: Run) -> str:
    """A random UUID, of version 4 and the variant of RFC 9562."""
    digits = f"{run.random_bits(128):032x}"
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _to_base64(run: Run, text: str) -> str:
    _search(run, text)
    run.check_text(2 * len(text) if text.isascii() else 6 * len(text))
    return b64encode(regexes.encode(text)).decode("ascii")


def _from_base64(run: Run, text: str) -> str:
    _search(run, text)
    run.check_text(4 * len(text))
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:
        raise Fail("this is no UTF-8 in Base64") from None


_STRING: Final = ("string", "string")
_MATCH: Final = ("match", "string")
_INPUT: Final = ("input", "string")
_PATTERN: Final = ("pattern", "string")
_FLAGS: Final = ("flags", "string?")
_LIST: Final = ("list", "list")
_DELIMITER: Final = ("delimiter", "string?")

STRINGS: Final[Mapping[str, tuple[Form, ...]]] = {
    "substring": (form(get_substring, _STRING, ("start position", "number"), ("length", "number"), required=2),),
    "string length": (form(_count_characters, _STRING),),
    "upper case": (form(_to_upper, _STRING),),
    "lower case": (form(_to_lower, _STRING),),
    "substring before": (form(_get_before, _STRING, _MATCH),),
    "substring after": (form(_get_after, _STRING, _MATCH),),
    "contains": (form(_contains, _STRING, _MATCH),),
    "starts with": (form(_starts_with, _STRING, _MATCH),),
    "ends with": (form(_ends_with, _STRING, _MATCH),),
    "matches": (form(_matches, _INPUT, _PATTERN, _FLAGS, required=2),),
    "replace": (form(_replace, _INPUT, _PATTERN, ("replacement", "string"), _FLAGS, required=3),),
    "split": (form(regexes.split, _STRING, ("delimiter", "string")),),
    "string join": (
        form(join, _LIST, _DELIMITER, required=1),
        # Camunda's; with three arguments there is none.
        form(join, _LIST, _DELIMITER, ("prefix", "string?"), ("suffix", "string?")),
    ),
    "extract": (form(regexes.extract, _STRING, _PATTERN),),
    "trim": (form(_trim, _STRING),),
    "is blank": (form(_is_blank, _STRING),),
    "uuid": (form(make_uuid),),
    "to base64": (form(_to_base64, ("value", "string")),),
    "from base64": (form(_from_base64, ("value", "string")),),
}
