"""What goes wrong at an element and can be corrected: it becomes an incident there."""

from __future__ import annotations


class Fault(Exception):
    """An expression, mapping, job or anything else of an element failed. `kind` is that of the incident."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
