"""Users' values as JSON, typed by hint on the way back.

msgspec knows dataclasses, structs, enums, date-times, UUIDs, decimals, bytes and the usual containers; pydantic models are
recognised by their two methods, without importing pydantic.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import msgspec

from holdfast.core.interrupts import is_interrupt
from holdfast.core.safe_texts import name_type, show
from holdfast.errors import DecodingError, EncodingError, HoldfastError, PayloadTooLarge

DEFAULT_LIMIT: Final = 2 * 1024 * 1024
DEEPEST: Final = 200
"""How many lists and objects may stand inside each other. Reading deeper ones would depend on the stack at that moment."""


class Payload(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """A value in transit: JSON as it stands, or what a codec made of it, named by `encoding` and `key`."""

    data: msgspec.Raw
    encoding: str = "json"
    key: str = ""


NULL: Final = Payload(msgspec.Raw(b"null"))


def _encode_unknown(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(type(value), "model_validate"):
        return dump(mode="json")
    raise TypeError(f"values of type {type(value).__module__}.{type(value).__qualname__} have no JSON form")


def _decode_unknown(hint: Any, value: Any) -> Any:
    validate = getattr(hint, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(value, hint if isinstance(hint, type) else object):
        return value
    raise TypeError(f"JSON cannot become {hint!r}")


def is_model(hint: Any) -> bool:
    """Whether `hint` brings its own conversion, as pydantic models do."""
    return hasattr(hint, "model_validate")


LET_THROUGH: Final = (HoldfastError, MemoryError)
"""What is not the value's fault: what else is forbidden to the code, and memory that runs out. And Ctrl-C."""
_OWN_WORDS: Final = (msgspec.MsgspecError, TypeError, ValueError, NotImplementedError, RecursionError)
"""Exceptions whose message says what is wrong with a value."""
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_unknown)
_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def make_decoder(hint: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for values of one hint; made once, since making one costs more than using it."""
    try:
        decoder = _DECODERS.get(hint)
    except TypeError:  # an unhashable hint, such as Annotated[int, []]
        return msgspec.json.Decoder(hint, dec_hook=_decode_unknown)
    if decoder is None:
        decoder = _DECODERS[hint] = msgspec.json.Decoder(hint, dec_hook=_decode_unknown)
    return decoder


def encode(value: Any, what: str, limit: int = DEFAULT_LIMIT) -> Payload:
    """`value` as a payload. Raises EncodingError or PayloadTooLarge; `what` names the value in the message.

    Types of users' have a say in it: whatever those raise is a reason to refuse the value.
    """
    try:
        data = _ENCODER.encode(value)
        has_non_finite = b"null" in data and _has_non_finite(value)
    except LET_THROUGH:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise EncodingError(
            f"Expected {what} to be a value that JSON can hold, but {_reason(value, error)}. "
            "Pass a dataclass, msgspec struct, pydantic model, or plain JSON types."
        ) from error
    if len(data) > limit:
        raise PayloadTooLarge(
            f"Expected {what} to be at most {limit} bytes as JSON, but it has {len(data)}. "
            "Store it elsewhere and pass a reference, or raise the engine's payload_limit."
        )
    if len(data) > 2 * DEEPEST and _is_too_deep(data):
        raise EncodingError(
            f"Expected {what} to be a value that JSON can hold, but it is nested more than {DEEPEST} levels deep. "
            "Pass a flat list, or refer to parts by id."
        )
    if has_non_finite:
        raise EncodingError(
            f"Expected {what} to be a value that JSON can hold, but it contains NaN or infinity. "
            "Pass None, or a string, in its place."
        )
    return Payload(msgspec.Raw(data))


def decode(payload: Payload, hint: Any, what: str) -> Any:
    """The value of a payload as `hint`. Raises DecodingError that says what was expected and found.

    Types of users' have a say in it: whatever those raise is a reason to refuse the value.
    """
    if payload.encoding != "json":
        raise DecodingError(
            f"Expected {what} to be plain JSON, but it is encoded as {payload.encoding!r}. "
            "Open the engine with the codec that wrote it."
        )
    try:
        return make_decoder(hint).decode(payload.data)
    except LET_THROUGH:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise DecodingError(
            f"Expected {what} to be {describe_hint(hint)}, but {describe_refusal(error)} in {_excerpt(payload)}. "
            "Send a value of that type, or change the type hint."
        ) from error


def show_value(payload: Payload) -> Any:
    """The value of a payload as plain JSON values, for people; of one that a codec encoded, only that it is encoded."""
    if payload.encoding != "json":
        return f"<encoded as {payload.encoding!r}" + (f" with key {payload.key!r}>" if payload.key else ">")
    return decode(payload, Any, "a stored value")


def describe_hint(hint: Any) -> str:
    """A type hint as people read it, for messages."""
    if isinstance(hint, type) and not getattr(hint, "__args__", None):
        return hint.__name__
    return str(hint).replace("typing.", "")


def _reason(value: Any, error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return f"this {name_type(value)} is nested too deeply or contains itself"
    if isinstance(error, UnicodeEncodeError):
        return "it holds text that is not valid Unicode"
    return describe_refusal(error)


def describe_refusal(error: BaseException) -> str:
    """What converting a value failed with, within a sentence."""
    text, name = _lower_first(show(error)), name_type(error)
    if not text:
        return name
    return text if isinstance(error, _OWN_WORDS) else f"{name}: {text}"


def _is_too_deep(data: bytes) -> bool:
    brackets = data.translate(None, _NOT_BRACKETS)
    if len(brackets) <= 2 * DEEPEST or _fold_brackets(brackets):
        return False
    # Perhaps only because of brackets inside of strings.
    return not _fold_brackets(_STRINGS.sub(b"", data).translate(None, _NOT_BRACKETS))


def _fold_brackets(brackets: bytes) -> bool:
    """Whether nothing is left after taking away the innermost pairs as often as is allowed."""
    for _ in range(DEEPEST):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not inner or len(inner) == len(brackets):
            return not inner
        brackets = inner
    return False


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _excerpt(payload: Payload, longest: int = 80) -> str:
    text = bytes(payload.data).decode(errors="replace")
    return text if len(text) <= longest else text[:longest] + "…"


def _has_non_finite(value: Any) -> bool:
    """Whether a float that JSON cannot hold is inside: msgspec writes those as null."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str | bytes | int) or value is None:
        return False
    if isinstance(value, dict):
        return any(_has_non_finite(key) or _has_non_finite(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_has_non_finite(item) for item in value)
    try:
        plain = msgspec.to_builtins(value, enc_hook=_encode_unknown)
    except (TypeError, ValueError):
        return False
    return plain is not value and not isinstance(plain, str) and _has_non_finite(plain)
