"""The input of a process: one JSON object of variables, whoever starts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.safe_texts import name_type
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.core.payloads import Payload


def encode_variables(process: str, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
    """The variables of a start as history records them, of at most `limit` bytes: one dictionary, or keyword arguments.

    Raises InvalidArguments, EncodingError or PayloadTooLarge.
    """
    what = f"the variables of process '{process}'"
    if len(args) > 1:
        raise InvalidArguments(
            f"Expected process '{process}' to be started with one dictionary of variables, but got {len(args)} arguments. "
            f'Write start("{process}", {{"name": value}}).'
        )
    given = args[0] if args else {}
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        given = _read_object(process, given, limit)
    for name in given:
        if not isinstance(name, str) or not name:
            said = "empty" if name == "" else name_type(name)
            raise InvalidArguments(
                f"Expected the names of variables of process '{process}' to be texts that are not empty, but one is {said}. "
                "Write them as texts."
            )
    twice = sorted(given.keys() & kwargs.keys())
    if twice:
        raise InvalidArguments(
            f"Expected each variable of process '{process}' once, but '{twice[0]}' is given twice. Leave one out."
        )
    return payloads.encode({**given, **kwargs}, what, limit)


def _read_object(process: str, given: Any, limit: int) -> Mapping[str, Any]:
    """A dataclass, a struct or a model as the variables that its fields are."""
    encoded = payloads.encode(given, f"the variables of process '{process}'", limit)
    value = msgspec.json.decode(encoded.data)
    if isinstance(value, dict) and not isinstance(given, str | bytes):
        return value
    raise InvalidArguments(
        f"Expected process '{process}' to be started with a dictionary of variables, but got {name_type(given)}. "
        f'Write start("{process}", {{"name": value}}).'
    )
