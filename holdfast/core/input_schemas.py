"""What a workflow takes, as values that can be announced: for callers that do not have its code."""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import models, payloads
from holdfast.core.check_schemas import make_check_schema

if TYPE_CHECKING:
    from holdfast.core.signatures import Signature

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_MISSING: Final = inspect.Parameter.empty
_LONGEST_DEFAULT: Final = 64 * 1024


class ParameterSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One parameter: its name, its type in words and as JSON Schema, and its default."""

    name: str
    hint: str
    schema: dict[str, Any]
    """What people are shown of it."""
    has_default: bool = False
    default: Any = None
    """As plain JSON."""
    check: dict[str, Any] = {}
    """The JSON Schema that arguments are checked by: see `check_schemas`. All fit an empty one, as older nodes announce."""


class InputSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one version of a workflow, in their order. Fields may be added: others are ignored."""

    what: str
    """What the workflow is called in messages."""
    parameters: list[ParameterSchema]

    def describe(self) -> str:
        """The parameters in words, as messages list them."""
        if not self.parameters:
            return "no arguments"
        shown = [f"{one.name}: {one.hint}" + (f" = {one.default!r}" if one.has_default else "") for one in self.parameters]
        return f"({', '.join(shown)})"


def make_input_schema(signature: Signature) -> InputSchema:
    """What a signature takes. A type that JSON Schema cannot describe is described as anything."""
    parameters = [
        _describe(name, hint, default)
        for name, hint, default in zip(signature.names, signature.hints, signature.defaults, strict=True)
    ]
    return InputSchema(what=signature.what, parameters=parameters)


def encode_input_schema(schema: InputSchema) -> tuple[str, bytes]:
    """A schema as (digest, JSON): the same for the same content, on every node."""
    body = _ENCODER.encode(schema)
    return hashlib.blake2b(body, digest_size=12).hexdigest(), body


def decode_input_schema(body: bytes) -> InputSchema | None:
    """A schema from its JSON; None if it cannot be read, as perhaps that of a newer Holdfast."""
    try:
        return msgspec.json.decode(body, type=InputSchema)
    except (msgspec.MsgspecError, ValueError):
        return None


def _describe(name: str, hint: Any, default: Any) -> ParameterSchema:
    has_default, plain = default is not _MISSING, None
    if has_default:
        try:
            plain = msgspec.json.decode(payloads.encode(default, name, _LONGEST_DEFAULT).data)
        except Exception:  # noqa: BLE001 - whatever it is: the node itself could not start it with that default
            has_default = False
    return ParameterSchema(
        name=name,
        hint=payloads.describe_hint(hint),
        schema=make_schema(hint),
        check=make_check_schema(hint),
        has_default=has_default,
        default=plain,
    )


def make_schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type, for people; an empty one, which all values fit, if JSON Schema cannot describe it."""
    try:
        if models.is_model(hint):
            found: dict[str, Any] = hint.model_json_schema()
            return found
        return msgspec.json.schema(hint, schema_hook=lambda _: {})
    except Exception:  # noqa: BLE001 - users' types have a say in it
        return {}
