"""How much there is of something, and a checksum of it: whether two stores hold the same."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import astuple, replace

from holdfast.store.contract import DeadLetterRow
from holdfast.store.moving import ORDERED, AnyRow, Kind

_BYTES: Final = 16
_MODULUS: Final = 1 << 8 * _BYTES
_ENCODER: Final = msgspec.msgpack.Encoder()


class Tally(msgspec.Struct, frozen=True):
    """So many rows, with the sum of their hashes: the same in whatever order they are read, and one page after another."""

    rows: int = 0
    checksum: str = "0" * 2 * _BYTES

    def add(self, kind: Kind, rows: Iterable[AnyRow]) -> Tally:
        """With these rows behind those before. Where the order of rows counts, their places are hashed with them."""
        count, total = self.rows, int(self.checksum, 16)
        is_ordered = kind in ORDERED
        for row in rows:
            values = astuple(row)
            canonical = _ENCODER.encode((count, values) if is_ordered else values)
            total += int.from_bytes(blake2b(canonical, digest_size=_BYTES).digest(), "big")
            count += 1
        return Tally(count, f"{total % _MODULUS:0{2 * _BYTES}x}")


def make_portable(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """Rows as every store can hold them: the one text that comes from anywhere goes without NUL, which not all take."""
    return [
        replace(row, reason=row.reason.replace("\0", "\ufffd"))
        if isinstance(row, DeadLetterRow) and "\0" in row.reason
        else row
        for row in rows
    ]
