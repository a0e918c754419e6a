"""Responses as values: what a task finds in its variable `response`."""

from __future__ import annotations

import codecs
import json
import re
from base64 import b64encode
from decimal import Decimal
from typing import Any, Final

import msgspec

from holdfast.connectors.http_reading import HttpResponse

_TEXT_TYPES: Final = frozenset({"", "application/xml", "application/x-www-form-urlencoded", "application/javascript"})
_CHARSETS: Final = frozenset(
    (
        *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii"),
        *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
        *(f"cp{page}" for page in range(1250, 1259)),
        *("koi8-r", "koi8-u", "koi8-t"),
        *("shift_jis", "cp932", "euc_jp", "euc_kr", "cp949", "gb2312", "gbk", "gb18030", "big5"),
    )
)
"""Charsets that bodies are decoded by, as `codecs.lookup(…).name` gives them. The service names the charset, and Python
knows some whose time grows with the square of the text (punycode, idna) and some that are no charsets (undefined)."""
_CHARSET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,39}")
_PARAMETER: Final = re.compile(r""";\s*(?:([^\s;="]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*))?[^;]*""")
"""Of a media type: a name and a value, which may be quoted; or anything else up to the next semicolon."""


def make_value(response: HttpResponse) -> dict[str, Any]:
    """`{status, headers, body}`: headers by their names in lower case; the body by its media type.

    JSON becomes a value, whose numbers are kept as they are written; texts become a text, anything else base64.
    """
    return {"status": response.status, "headers": make_headers(response), "body": _read_body(response)}


def make_headers(response: HttpResponse) -> dict[str, str]:
    """The headers by their names in lower case; several of one name are joined by commas."""
    names = dict.fromkeys(name.lower() for name, _ in response.headers)
    return {name: response.find(name) or "" for name in names}


def make_expression_value(response: HttpResponse) -> dict[str, Any]:
    """The same for expressions, which take numbers as decimals."""
    value = make_value(response)
    if isinstance(value["body"], msgspec.Raw):
        value["body"] = json.loads(bytes(value["body"]), parse_float=Decimal)
    return value


def _read_body(response: HttpResponse) -> Any:
    if not response.body:
        return None
    media_type, charset = _read_content_type(response.find("content-type") or "")
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            msgspec.json.decode(response.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # some services send a text of their own when they fail
        else:
            return msgspec.Raw(response.body)
    if media_type in _TEXT_TYPES or media_type.startswith("text/") or media_type.endswith(("json", "+xml")):
        text = _decode_text(response.body, charset)
        if text is not None:
            return text
    return b64encode(response.body).decode("ascii")


def _decode_text(body: bytes, charset: str) -> str | None:
    """The text of a body; None if its charset is not on the list, or it is not in that charset."""
    if not _CHARSET_NAME.fullmatch(charset):
        return None
    try:
        codec = codecs.lookup(charset)
        return body.decode(codec.name) if codec.name in _CHARSETS else None
    except (LookupError, UnicodeError):
        return None


def _read_content_type(text: str) -> tuple[str, str]:
    """The media type in lower case, empty if there is none, and the charset (RFC 9110, section 8.3).

    Takes time in proportion to the text; that of `email.message` grows with the square of some.
    """
    media_type = text.partition(";")[0].strip().lower()
    if media_type.count("/") != 1:
        media_type = ""
    for found in _PARAMETER.finditer(text):
        if (found[1] or "").lower() == "charset":
            return media_type, found[2].strip('"')
    return media_type, "utf-8"
