"""Values that cannot travel as payloads."""

from __future__ import annotations

from holdfast.errors.roots import InvalidRequest


class PayloadError(InvalidRequest):
    """A value cannot travel as a payload."""


class EncodingError(PayloadError):
    """A value cannot become a payload: JSON has no form for it, it is nested too deeply, or it would lose something."""


class InvalidResult(EncodingError):
    """What a workflow or an activity returned does not fit the return hint of its function."""


class DecodingError(PayloadError):
    """The JSON does not fit the type hint."""


class CodecError(PayloadError):
    """A payload that the engine's codec cannot encode or decode; raised by codecs, and for what they return."""


class PayloadTooLarge(PayloadError):
    """The encoded value is larger than the engine's limit."""
