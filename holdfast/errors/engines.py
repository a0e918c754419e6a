"""Engines and clients that cannot be used."""

from __future__ import annotations

from holdfast.errors.roots import HoldfastError


class EngineClosed(HoldfastError):
    """The engine was not opened yet, or is shut down; those who wait for a result then get this too."""


class ConnectionRefused(HoldfastError):
    """A client may not speak to the process that owns a database, or cannot: it is another user's, or of another version."""


class WrongEventLoop(HoldfastError):
    """A method of an engine was awaited in another event loop than the one in which the engine was opened."""
