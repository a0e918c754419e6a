"""The values of one execution's code on their way into its history, and those of its history that cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import payloads
from holdfast.core.behaviours import CHECKED_PAYLOADS, STRICT_ARGUMENTS
from holdfast.core.failures import Failure
from holdfast.core.payloads import Strictness
from holdfast.core.signatures import check_hint
from holdfast.core.type_checks import check_plain
from holdfast.core.unused import NO_ENTRIES, put
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.core.payloads import Payload
    from holdfast.core.signatures import Signature
    from holdfast.core.type_checks import Check
    from holdfast.errors import HoldfastError

CHANGED_TYPE: Final = (
    "History records this value, so the type was changed since. Let it take the old form too (give new fields defaults, "
    "keep old names), then retry the execution."
)


class Values:
    """Encodes what the code of one execution passes on, as strictly as the execution recorded when it began."""

    last_headers: dict[tuple[str, str], Mapping[str, str]] = NO_ENTRIES
    """The headers of what was taken last, by kind (of a subscription, or "update") and name; only where there were some."""
    undecodable: HoldfastError | None = None
    """Why the first recorded value that does not fit its hint could not be read on replay."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.strictness = Strictness.UNCHECKED
        """How much of what would not come back as it was is refused: by the behaviours that the execution recorded."""
        self.checks_hints = False
        """Whether types are refused that no value can be read as: by the behaviours, too."""

    def encode(self, value: Any, what: str, check: Check | None = check_plain) -> Payload:
        """A value of the code's as a payload; `check` as in `payloads.encode`. Raises EncodingError or PayloadTooLarge."""
        return payloads.encode(value, what, self._limit, check, strictness=self.strictness)

    def encode_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], callee: str) -> Payload:
        """The arguments of what is called by its name alone. Raises EncodingError, PayloadTooLarge or InvalidArguments.

        Where some are named, names and values are recorded, and bound to parameters where the function is.
        """
        what = f"the arguments of {callee}"
        if not kwargs:
            return self.encode(args, what)
        if self.strictness is not Strictness.STRICT:
            raise InvalidArguments(
                f"Expected only positional arguments for {callee} called by name, but got {sorted(kwargs)}. "
                "Pass them by position, or pass the decorated function."
            )
        return msgspec.structs.replace(self.encode({"args": args, "kwargs": kwargs}, what), named=True)

    def encode_result(self, signature: Signature, value: Any) -> Payload:
        """The result of the code. It fits the return hint, unless the execution began before that was checked."""
        if self.strictness is not Strictness.UNCHECKED:
            return signature.encode_result(value, self._limit, strictness=self.strictness)
        return self.encode(value, f"the result of {signature.what}")

    def check_hint(self, hint: Any, kind: str, name: str) -> None:
        """Raises InvalidArguments if what the code waits for, such as a signal of a name, cannot be read as a type."""
        if self.checks_hints:
            check_hint(hint, kind, name)

    def note_headers(self, kind: str, name: str, headers: Mapping[str, str]) -> None:
        """Something was taken: the code may ask for its headers until the next of its kind and name is."""
        if headers or self.last_headers:
            self.last_headers = put(self.last_headers, (kind, name), headers)

    def note_undecodable(self, error: HoldfastError, *, is_replaying: bool) -> None:
        """Keep why a recorded value cannot be read, for the message of a replay that goes astray after it."""
        if is_replaying and self.undecodable is None:
            self.undecodable = error

    def explain(self, failure: Failure) -> Failure:
        """The failure of a replay; if a recorded value could not be read, that is what made it go astray."""
        error = self.undecodable
        if error is None:
            return failure
        message = f"{error.message} {CHANGED_TYPE} What followed from it: {failure.message}"
        return Failure(type=failure.type, message=message, trace=failure.trace)


def find_strictness(behaviours: Collection[str]) -> Strictness:
    """How strictly values are encoded for an execution that recorded these behaviours."""
    if STRICT_ARGUMENTS in behaviours:
        return Strictness.STRICT
    return Strictness.CHECKED if CHECKED_PAYLOADS in behaviours else Strictness.UNCHECKED
