"""Users' values as JSON, typed by hint on the way back.

msgspec knows dataclasses, structs, enums, date-times, UUIDs, decimals, bytes and the usual containers; `models` knows
pydantic's models, `decoders` the rest. What would not come back as it was is refused when it is written (`type_checks`).
"""

from __future__ import annotations

import enum
import math
import re
from typing import Any, Final
from weakref import WeakSet

import msgspec

from holdfast.core import decoders, models, type_checks
from holdfast.core.interrupts import is_interrupt
from holdfast.core.models import Unfaithful
from holdfast.core.safe_texts import name_type, show
from holdfast.core.type_checks import Check
from holdfast.errors import DecodingError, EncodingError, HoldfastError, PayloadTooLarge

DEFAULT_LIMIT: Final = 2 * 1024 * 1024
DEEPEST: Final = 200
"""How many lists and objects may stand inside each other. Reading deeper ones would depend on the stack at that moment."""


class Payload(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """A value in transit: JSON as it stands, or what a codec made of it, named by `encoding` and `key`."""

    data: msgspec.Raw
    encoding: str = "json"
    key: str = ""
    named: bool = False
    """Whether it holds arguments with their names: see `signatures.NamedArguments`. Nodes that do not know them do not know
    this field either, and leave alone what has it."""


class Strictness(enum.Enum):
    """How much of what would not come back as it was is refused. Executions keep to what they recorded when they began."""

    UNCHECKED = "unchecked"
    """Nothing, as before the behaviour `checked-payloads`."""
    CHECKED = "checked"
    """What that behaviour refuses: all but `type_checks.Ambiguous`."""
    STRICT = "strict"
    """Everything: the behaviour `strict-arguments`, and whoever is no workflow."""


NULL: Final = Payload(msgspec.Raw(b"null"))


LET_THROUGH: Final = (HoldfastError, MemoryError)
"""What is not the value's fault: what else is forbidden to the code, and memory that runs out. And Ctrl-C."""
_OWN_WORDS: Final = (msgspec.MsgspecError, TypeError, ValueError, NotImplementedError, RecursionError)
"""Exceptions whose message says what is wrong with a value."""
_WORDS_WITHOUT_VALUES: Final = ("Expected `", "Object missing")
"""How messages of msgspec begin that say types and names of fields, and no value."""
_WORDS_OF_ENCODERS: Final = ("Encoding objects of type", "Only dicts with", "values of type")
"""How messages begin, of msgspec and of ours, that say which types cannot be written, and no value."""
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ENCODER: Final = msgspec.json.Encoder(enc_hook=type_checks.encode_unknown)
_TOLERANT_ENCODER: Final = msgspec.json.Encoder(enc_hook=type_checks.encode_tolerantly)
_UNCHECKED_ENCODER: Final = msgspec.json.Encoder(enc_hook=type_checks.encode_unchecked)


MISFIT: Final = "Send a value of that type, or change the type hint."
"""How a message ends that quotes a value which does not fit its type hint."""


class Confidence:
    """Whether values may be quoted in messages, which are stored and shown: not while a store with a codec is open."""

    def __init__(self) -> None:
        self._holders: WeakSet[object] = WeakSet()

    def begin(self, holder: object) -> None:
        """Messages of this process quote no value until `end` is called for the same holder, or it is gone."""
        self._holders.add(holder)

    def end(self, holder: object) -> None:
        """The holder does not ask for it any more. Idempotent."""
        self._holders.discard(holder)

    def __bool__(self) -> bool:
        return bool(self._holders)


CONFIDENCE: Final = Confidence()


def hide_values(message: str) -> str:
    """A message of this module, or one that quotes it, without the value that it shows: for logs."""
    if MISFIT not in message:
        return message
    return f"{message.partition(' to be ')[0]} to have another type; the value is not logged"


def encode(
    value: Any,
    what: str,
    limit: int = DEFAULT_LIMIT,
    check: Check | None = type_checks.check_plain,
    *,
    strictness: Strictness = Strictness.STRICT,
) -> Payload:
    """`value` as a payload. Raises EncodingError or PayloadTooLarge; `what` names the value in the message.

    `check` is that of the hint by which the value will be read, by default Any. Types of users' have a say in it: whatever
    those raise is a reason to refuse the value. Less strictly, a value may be written that does not come back as it was: for
    executions that began before this was checked.
    """
    try:
        if strictness is Strictness.STRICT:
            data = _ENCODER.encode(value)
            if check is not None and (check is not type_checks.check_plain or b'":' in data):  # without keys none is lost
                check(value)
        else:
            data = _encode_as_before(value, check, strictness)
        has_non_finite = b"null" in data and _has_non_finite(value)
    except LET_THROUGH:
        raise
    except Unfaithful as error:
        if CONFIDENCE:
            raise EncodingError(f"Expected {what} to arrive as it was sent, but {error.without_values}") from None
        raise EncodingError(f"Expected {what} to arrive as it was sent, but {show(error)}") from error
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise EncodingError(
            f"Expected {what} to be a value that JSON can hold, but {_reason(value, error)}. "
            "Pass a dataclass, msgspec struct, pydantic model, or plain JSON types."
        ) from (None if CONFIDENCE else error)  # its message may have the value
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


def _encode_as_before(value: Any, check: Check | None, strictness: Strictness) -> bytes:
    if strictness is Strictness.UNCHECKED:
        return _UNCHECKED_ENCODER.encode(value)
    data = _TOLERANT_ENCODER.encode(value)
    if check is not None:
        try:
            check(value)
        except type_checks.Ambiguous:
            pass
    return data


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
        return decoders.make_decoder(hint).decode(payload.data)
    except LET_THROUGH:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        if CONFIDENCE:
            raise DecodingError(
                f"Expected {what} to be {describe_hint(hint)}, but {_describe_silently(error)}; the value is not shown, "
                f"since there is a codec. {MISFIT}"
            ) from None  # its message may have the value
        raise DecodingError(
            f"Expected {what} to be {describe_hint(hint)}, but {describe_refusal(error)} in {_excerpt(payload)}. {MISFIT}"
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
    if CONFIDENCE and not show(error).startswith(_WORDS_OF_ENCODERS):
        return f"writing it raised {name_type(error)}; what that says is not shown, since there is a codec"
    return describe_refusal(error)


def describe_refusal(error: BaseException) -> str:
    """What converting a value failed with, within a sentence."""
    text, name = _lower_first(show(error)), name_type(error)
    if not text:
        return name
    return text if isinstance(error, _OWN_WORDS) else f"{name}: {text}"


def _describe_silently(error: BaseException) -> str:
    """What reading a value failed with, without the value: msgspec names types and places, others whatever they like."""
    text = str(error) if type(error) is msgspec.ValidationError else ""
    return _lower_first(text) if text.startswith(_WORDS_WITHOUT_VALUES) else "it does not fit"


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
    if models.is_model(type(value)) and any(map(_has_non_finite, models.list_values(value))):
        return True
    try:
        plain = msgspec.to_builtins(value, enc_hook=type_checks.encode_unchecked)
    except (TypeError, ValueError):
        return False
    return plain is not value and not isinstance(plain, str) and _has_non_finite(plain)
