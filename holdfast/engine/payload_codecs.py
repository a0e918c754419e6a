"""The seam for encryption and compression: users' values on their way to the store and back.

A codec sees payloads and nothing else: arguments, results, values of signals, heartbeat details, states,
details of failures. Ids, names, times, metadata, reasons and the messages of failures stay as they are, so that lists,
histories, cancelling, moving to another database and all that needs no value work without the codec. While there is a
codec, what Holdfast itself says in messages quotes no value; what users' exceptions say is theirs.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from holdfast.core.payloads import Payload
from holdfast.core.safe_texts import count_noun
from holdfast.errors import CodecError, CodecMissing, HoldfastError, InvalidConfiguration, StoreFault, StoreUnavailable

PLAIN: Final = "json"
"""The encoding of values that no codec has touched."""
LONGEST_CALL: Final = 30.0
"""Seconds that a codec is waited for: as long as it does not answer, the transaction is open, and nothing else is done."""
LONGEST_LOOK: Final = 3.0
"""Seconds that a codec is waited for where values are only shown: without it they are shown as encoded."""


class EncodedPayload(msgspec.Struct, frozen=True):
    """One value as a codec takes and gives it."""

    data: bytes
    """The bytes: JSON text where `encoding` is 'json', else whatever the codec made of it."""
    encoding: str = PLAIN
    """What the bytes are, by a name that the codec chooses: it is stored beside them."""
    key: str = ""
    """By which key they were encrypted, if any: the codec chooses, and it is stored beside them."""


class PayloadCodec(Protocol):
    """Encodes payloads before they are stored, and decodes them after they are read. Give one to `Engine(codec=…)`.

    Both methods return as many payloads as they are given, in the same order. They are called once for all payloads of a
    transaction, and may wait for others, such as a key service: the transaction waits with them, so keep it short. A call
    that takes longer than 30 seconds is cancelled, and counts as an outage.

    CodecError says that a payload cannot be encoded or decoded: an execution that writes it is blocked with the message,
    and one that needs its value is left to other nodes, and looked at again every 30 seconds. Any other exception is taken
    for an outage, as of a key service: nothing is stored, and the transaction is tried again.
    """

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> Sequence[EncodedPayload]:
        """The payloads of one organisation as they are to be stored."""
        ...

    async def decode(self, payloads: Sequence[EncodedPayload]) -> Sequence[EncodedPayload]:
        """Payloads that are not JSON, as JSON again. Raises CodecError for what it cannot decode."""
        ...


def check_codec(codec: object) -> None:
    """Raises InvalidConfiguration if an object can be no codec; None stands for none."""
    is_codec = not isinstance(codec, type) and all(callable(getattr(codec, name, None)) for name in ("encode", "decode"))
    if codec is not None and not is_codec:
        raise InvalidConfiguration(
            f"Expected codec=… to be an object with async methods encode and decode, but it is {codec!r}. "
            "Write a class as holdfast.PayloadCodec describes it, and pass one object of it."
        )


# --- payloads inside of values ------------------------------------------------------------------------------------------


def list_payloads(value: Any) -> Iterator[Payload]:
    """All payloads inside of an event, an envelope or another of our values, in a fixed order."""
    if type(value) is Payload:
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from list_payloads(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from list_payloads(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from list_payloads(item)


def replace_payloads(value: Any, payloads: Iterator[Payload]) -> Any:
    """The value with others in the place of its payloads, in the order of `list_payloads`."""
    if type(value) is Payload:
        return next(payloads)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: replace_payloads(one, payloads) for name, one in fields.items()}
        return msgspec.structs.replace(value, **{name: one for name, one in changed.items() if one is not fields[name]})
    if isinstance(value, tuple | list):
        return type(value)([replace_payloads(item, payloads) for item in value])
    if isinstance(value, dict):
        return {key: replace_payloads(item, payloads) for key, item in value.items()}
    return value


_MARK: Final = b'"encoding":'
"""What is in the JSON of every value with an encoded payload, and hardly in any other."""


def check_decoded(body: bytes, value: Any) -> None:
    """Raises CodecMissing if a value, read from `body`, has payloads that are still encoded. Costs a search in the bytes."""
    if _MARK not in body:
        return
    for payload in list_payloads(value):
        if is_encoded(payload):
            raise CodecMissing(
                f"Expected to take a turn of an execution, but its values are encoded as {payload.encoding!r} with key "
                f"{payload.key!r}, and this engine cannot decode them. Open it with the codec that wrote them, and its keys."
            )


# --- the codec's part ---------------------------------------------------------------------------------------------------


async def encode_payloads(codec: PayloadCodec, payloads: Sequence[Payload], org: str) -> list[Payload]:
    """Payloads as they are stored; those that are encoded already stay as they are."""
    return await _convert(payloads, lambda given: codec.encode(given, org), is_plain, _to_stored, "encode")


async def decode_payloads(codec: PayloadCodec, payloads: Sequence[Payload]) -> list[Payload]:
    """Payloads as programs take them. If the codec raises CodecError, they are tried one by one."""
    try:
        return await _decode_together(codec, payloads)
    except CodecError:
        return [await _decode_alone(codec, payload) for payload in payloads]


async def decode_shown(codec: PayloadCodec, payloads: Sequence[Payload]) -> list[Payload]:
    """Payloads as they are shown: those that the codec cannot decode now stay encoded, also in its outage."""
    try:
        async with asyncio.timeout(LONGEST_LOOK):
            return await decode_payloads(codec, payloads)
    except TimeoutError:
        return list(payloads)
    except StoreUnavailable as error:
        if error.fault is not StoreFault.CODEC:
            raise
        return list(payloads)


async def _decode_together(codec: PayloadCodec, payloads: Sequence[Payload]) -> list[Payload]:
    return await _convert(payloads, codec.decode, is_encoded, _to_plain, "decode")


async def _decode_alone(codec: PayloadCodec, payload: Payload) -> Payload:
    try:
        [decoded] = await _decode_together(codec, [payload])
    except CodecError:
        return payload  # whoever needs its value is told
    return decoded


async def _convert(
    payloads: Sequence[Payload],
    call: Callable[[Sequence[EncodedPayload]], Any],
    concerns: Callable[[Payload], bool],
    read: Callable[[EncodedPayload], Payload],
    verb: str,
) -> list[Payload]:
    given = [payload for payload in payloads if concerns(payload)]
    if not given:
        return list(payloads)
    try:
        found = await _wait_for(call([_to_public(payload) for payload in given]))
    except HoldfastError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise  # it is we who are cancelled, not something that the codec waited for
        raise StoreUnavailable(
            f"Expected the codec to {verb} {count_noun(len(given), 'payload')}, but it raised "
            f"{type(error).__name__}: {error}. Nothing was stored; what waits is tried again.",
            fault=StoreFault.CODEC,
        ) from error
    found = list(found) if isinstance(found, Iterable) else [found]
    if not all(map(_is_well_formed, found)):
        raise CodecError(
            f"Expected the codec to {verb} payloads into EncodedPayload objects with bytes, an encoding and a key that are "
            "strings, but it returned something else. Correct it."
        )
    if len(found) != len(given):
        raise CodecError(
            f"Expected the codec to {verb} {count_noun(len(given), 'payload')} into as many, but it returned "
            f"{len(found)}. Correct it."
        )
    converted = (_keep_mark(payload, read(one)) for payload, one in zip(given, found, strict=True))
    return [next(converted) if concerns(payload) else payload for payload in payloads]


async def _wait_for(answer: Any) -> Any:
    """What a codec answers. Raises TimeoutError if that takes too long."""
    try:
        asyncio.current_task()
    except RuntimeError:  # in a thread without a loop, where a codec that waits is refused
        return await answer
    async with asyncio.timeout(LONGEST_CALL):
        return await answer


def _keep_mark(before: Payload, after: Payload) -> Payload:
    return msgspec.structs.replace(after, named=True) if before.named else after


def _is_well_formed(found: object) -> bool:
    """Whether something that a codec returned can be stored and read again."""
    if not isinstance(found, EncodedPayload):
        return False
    return isinstance(found.data, bytes) and isinstance(found.encoding, str) and isinstance(found.key, str)


def is_plain(payload: Payload) -> bool:
    """Whether a payload is JSON as it stands."""
    return payload.encoding == PLAIN


def is_encoded(payload: Payload) -> bool:
    """Whether a payload is what a codec made of JSON."""
    return payload.encoding != PLAIN


def _to_public(payload: Payload) -> EncodedPayload:
    if is_plain(payload):
        return EncodedPayload(bytes(payload.data))
    try:
        return EncodedPayload(b64decode(msgspec.json.decode(payload.data, type=str)), payload.encoding, payload.key)
    except (msgspec.MsgspecError, Base64Error, ValueError) as error:
        raise CodecError(
            f"Expected a payload that is encoded as {payload.encoding!r} to be stored as base64, but {error}. "
            "Run `holdfast check` to see what else is damaged."
        ) from error


def _to_stored(encoded: EncodedPayload) -> Payload:
    if encoded.encoding == PLAIN:
        return _to_plain(encoded)
    return Payload(msgspec.Raw(msgspec.json.encode(b64encode(encoded.data).decode())), encoded.encoding, encoded.key)


def _to_plain(encoded: EncodedPayload) -> Payload:
    if encoded.encoding != PLAIN:
        raise CodecError(
            f"Expected the codec to decode a payload into JSON, but it left it as {encoded.encoding!r}. "
            "Open the engine with the codec that wrote it."
        )
    try:
        msgspec.json.decode(encoded.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(
            f"Expected the codec to give JSON, but {error}. Correct it, or use the key that wrote it."
        ) from error
    return Payload(msgspec.Raw(encoded.data))


def finish_at_once(coroutine: Any) -> Any:
    """What a coroutine returns that need not wait: for transactions on SQLite, during which nothing else may happen."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise CodecError(
        "Expected the codec to answer at once in a transaction on SQLite, but it waits for something. "
        "Start or signal outside of engine.transaction, or let the codec work without waiting."
    )
