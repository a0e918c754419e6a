"""Responses as values: what a task finds in its variable `response`."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from email.message import Message
from typing import Any, Final

import msgspec

from holdfast.connectors.http_reading import HttpResponse

_TEXT_TYPES: Final = frozenset({"", "application/xml", "application/x-www-form-urlencoded", "application/javascript"})


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
        try:
            return response.body.decode(charset)
        except (UnicodeDecodeError, LookupError):
            pass
    return b64encode(response.body).decode("ascii")


def _read_content_type(text: str) -> tuple[str, str]:
    message = Message()
    message["content-type"] = text
    charset = message.get_content_charset("utf-8")
    return (message.get_content_type() if "/" in text else ""), charset if charset.isascii() else "utf-8"
