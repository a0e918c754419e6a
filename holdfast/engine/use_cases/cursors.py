"""Cursors of lists: where a page ended, and of which list it is a page.

A list without a filter and an order of its own is ordered by execution ids alone, so its cursor is one:
`h1.<execution id>`. Any other cursor names its list by a digest of all conditions and of the order, and is refused for
another: `h2.<digest>.<position>`. What it holds is the last row of the page, never a number of rows: so pages neither
repeat nor skip an execution when others come, change or go meanwhile. One whose own value changes moves in the list.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from holdfast.errors import InvalidArguments
from holdfast.filters.syntax import NEWEST_FIRST, Attribute, Column, Field, Value
from holdfast.store.contract import ExecutionFilter
from holdfast.store.rows import ExecutionPage

_PLAIN: Final = re.compile(r"h1\.([0-9a-z-]{1,64})")
_BOUND: Final = re.compile(r"h2\.([0-9a-f]{16})\.([0-9A-Za-z_=-]{1,4000})")


class _Position(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    before: str
    value: str | int | None


_DECODER: Final = msgspec.json.Decoder(_Position)


def make_cursor(page: ExecutionPage, query: ExecutionFilter) -> str | None:
    """The cursor behind a page; None if that was all."""
    if page.end is None:
        return None
    if _is_plain(query):
        return f"h1.{page.end}"
    position = urlsafe_b64encode(msgspec.json.encode(_Position(page.end, page.end_value))).decode()
    return f"h2.{_digest(query)}.{position}"


def read_cursor(cursor: str, query: ExecutionFilter) -> ExecutionFilter:
    """The filter for the page behind a cursor. Raises InvalidArguments if it is none, or one of another list."""
    bound = _BOUND.fullmatch(cursor) if isinstance(cursor, str) else None
    if bound is not None:
        return _read_bound(cursor, bound, query)
    plain = _PLAIN.fullmatch(cursor) if isinstance(cursor, str) else None
    if plain is None:
        raise _refuse(cursor)
    if not _is_plain(query):
        raise _refuse_other()
    return msgspec.structs.replace(query, before=plain[1])


def _read_bound(cursor: str, bound: re.Match[str], query: ExecutionFilter) -> ExecutionFilter:
    if bound[1] != _digest(query):
        raise _refuse_other()
    try:
        position = _DECODER.decode(urlsafe_b64decode(bound[2]))
    except (ValueError, msgspec.MsgspecError):
        raise _refuse(cursor) from None
    if "\0" in position.before or not _may_end_with(position.value, query.order.field):
        raise _refuse(cursor)
    return msgspec.structs.replace(query, before=position.before, before_value=position.value)


def _may_end_with(value: Value | None, field: Field) -> bool:
    """Whether a page in the order of a field may end with a value, so that stores can compare it with theirs."""
    if value is None:
        return True
    if isinstance(field, Attribute):
        return isinstance(value, str) and "\0" not in value
    return field is Column.CLOSED and isinstance(value, int) and -(2**63) <= value < 2**63


def _is_plain(query: ExecutionFilter) -> bool:
    return query.where is None and query.order == NEWEST_FIRST


def _digest(query: ExecutionFilter) -> str:
    """Names a list: all conditions and the order, but neither the page nor its size."""
    whole = msgspec.structs.replace(query, before=None, before_value=None, limit=0, scan=None)
    kinds = repr((whole, sorted(whole.metadata.items())))  # with the names of classes: And and Or have the same fields
    return hashlib.sha256(kinds.encode()).hexdigest()[:16]


def _refuse(cursor: object) -> InvalidArguments:
    return InvalidArguments(
        f"Expected a cursor that a list returned, but it is {cursor!r:.100}. Pass `page.cursor` unchanged."
    )


def _refuse_other() -> InvalidArguments:
    return InvalidArguments(
        "Expected a cursor of the same list, but it belongs to one with other conditions or another order. "
        "Pass the conditions and the order of the page before, or no cursor to begin anew."
    )
