"""The roots of steps and calls, and the value that is sent in every way: what all files of plans share."""

from __future__ import annotations

import msgspec


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do"):
    """The root of all steps of plans. `label` is unique in a scenario."""

    label: str


class ClientCall(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all calls of clients. A client makes one after the other, each after a pause."""

    target: str
    pause_millis: int = 0


class SignalToken(msgspec.Struct, frozen=True):
    """The value of a signal: its sender, and its number among those of the sender. Unique in a scenario."""

    sender: str
    number: int = 0
