"""Row counts with checksums, by which a transfer proves that two databases hold the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.safe_texts import is_plain_text, make_plain_text
from holdfast.store.incidents import IncidentRow
from holdfast.store.pauses import PauseRow
from holdfast.store.rows import DeadLetterRow
from holdfast.store.transfer import ORDERED_KINDS, AnyRow, RowKind

_BYTES: Final = 16
_MODULUS: Final = 1 << 8 * _BYTES
_ENCODER: Final = msgspec.msgpack.Encoder()


class Tally(msgspec.Struct, frozen=True):
    """A row count and the sum of the rows' hashes: independent of the order of reading, and added up page by page."""

    rows: int = 0
    checksum: str = "0" * 2 * _BYTES

    def add(self, kind: RowKind, rows: Iterable[AnyRow]) -> Tally:
        """The tally with more rows added. For kinds of rows whose order matters, the position is hashed with each row."""
        count, total = self.rows, int(self.checksum, 16)
        is_ordered = kind in ORDERED_KINDS
        for row in rows:
            values = astuple(row)
            canonical = _ENCODER.encode((count, values) if is_ordered else values)
            total += int.from_bytes(blake2b(canonical, digest_size=_BYTES).digest(), "big")
            count += 1
        return Tally(count, f"{total % _MODULUS:0{2 * _BYTES}x}")


def make_portable(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """Rows as every database can hold them: NUL, which PostgreSQL refuses, is replaced in texts for people."""
    return [_make_portable(row) for row in rows]


def _make_portable(row: AnyRow) -> AnyRow:
    match row:
        case DeadLetterRow():
            return row if is_plain_text(row.reason) else replace(row, reason=make_plain_text(row.reason))
        case PauseRow() if not (is_plain_text(row.reason) and is_plain_text(row.by)):
            return replace(row, reason=make_plain_text(row.reason), by=make_plain_text(row.by))
        case IncidentRow() if not is_plain_text(row.message):
            return replace(row, message=make_plain_text(row.message))
        case _:
            return row
