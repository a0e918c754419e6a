"""The types of which exported lines are made: what they refuse, and how bodies that nobody can read are kept."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from holdfast.core import codec
from holdfast.errors import CorruptStore, NewerFormat

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
Text: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
Name: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00]+$")]
Uuid: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Number: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
AttemptNumber: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class StrictStruct(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Decodes only objects that have all of its fields and no others."""


def write_body(body: bytes, decode: Callable[[bytes], Any]) -> Raw:
    """A stored body as JSON on one line; in base64 if it cannot be decoded, so that nothing is lost."""
    try:
        decode(body)
    except (CorruptStore, NewerFormat):
        return Raw(codec.encode(b64encode(body).decode()))
    return Raw(body if b"\n" not in body and b"\r" not in body else codec.encode(msgspec.json.decode(body)))


def read_body(raw: Raw) -> bytes:
    """A body as it was stored. Raises ValueError."""
    body = bytes(raw)
    if not body.startswith(b'"'):
        return body
    try:
        return b64decode(msgspec.json.decode(body), validate=True)
    except (Base64Error, ValueError) as error:
        raise ValueError(f"a body is neither an object nor base64 ({error})") from error
