"""What the driver raises, as errors of ours."""

from __future__ import annotations

import socket
import ssl
from typing import Final

import asyncpg
from asyncpg import exceptions

from holdfast.errors import CorruptStore, StoreError, StoreFault, StoreUnavailable

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Everything that a call to the driver may raise because of the server, or of the way to it."""

_CUT: Final = (
    exceptions.PostgresConnectionError,
    exceptions.AdminShutdownError,
    exceptions.CrashShutdownError,
    exceptions.IdleInTransactionSessionTimeoutError,
    # By name: older drivers do not know it.
    getattr(exceptions, "TransactionTimeoutError", exceptions.IdleInTransactionSessionTimeoutError),
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""Errors after which the connection is gone, or cannot be trusted."""

_PASSING: Final = (
    *_CUT,
    exceptions.CannotConnectNowError,
    exceptions.InsufficientResourcesError,
    exceptions.OperatorInterventionError,
    exceptions.LockNotAvailableError,
    exceptions.TransactionRollbackError,
    exceptions.ReadOnlySQLTransactionError,
)
"""What may be over when it is tried again."""


_TIMED_OUT: Final = frozenset({"57014", "25P03", "25P04"})
"""statement_timeout, idle_in_transaction_session_timeout, transaction_timeout. By code: drivers do not know all of them."""


def is_cut(error: BaseException) -> bool:
    """Whether the connection broke: then a commit may have happened or not."""
    return isinstance(error, _CUT)


def find_fault(error: BaseException) -> StoreFault:
    """What an error that may pass says about the work that was not taken."""
    for one in (error, error.__cause__):  # what the server said before it closed the connection is the cause of that
        if getattr(one, "sqlstate", None) in _TIMED_OUT:
            return StoreFault.TIMED_OUT
        if isinstance(one, exceptions.InsufficientResourcesError):
            return StoreFault.SHORTAGE
    return StoreFault.OUT_OF_REACH


def translate(error: BaseException, doing: str, shown: str) -> StoreError:
    """The error to raise, by the formula."""
    fault = find_fault(error)
    text = str(error).partition("\n")[0]  # details and hints follow
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, exceptions.DiskFullError):
        return StoreUnavailable(
            f"Expected to {doing} {shown}, but the server's disk is full ({said}). Make room there.", fault=fault
        )
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreUnavailable(
            f"Expected to {doing} {shown}, but the server is out of shared memory ({said}). "
            "Raise its max_locks_per_transaction.",
            fault=fault,
        )
    if isinstance(error, exceptions.TooManyConnectionsError):
        return StoreUnavailable(
            f"Expected to {doing} {shown}, but it has no connection left ({said}). Raise max_connections, or use a pooler.",
            fault=fault,
        )
    if isinstance(error, exceptions.InvalidAuthorizationSpecificationError):
        return StoreUnavailable(f"Expected to {doing} {shown}, but it refuses us: {text}. Check user and password.")
    if isinstance(error, exceptions.InvalidCatalogNameError):
        return StoreUnavailable(f"Expected to {doing} {shown}, but {text}. Create the database, or correct the URL.")
    if isinstance(error, exceptions.InsufficientPrivilegeError):
        return StoreUnavailable(f"Expected to {doing} {shown}, but {text}. Grant the role what it needs.")
    if isinstance(error, exceptions.UndefinedTableError | exceptions.UndefinedColumnError):
        return CorruptStore(
            f"Expected to {doing} {shown}, but {text}. Another hand changed the schema; restore it. "
            "If a newer Holdfast migrated it, upgrade this node."
        )
    if isinstance(error, _PASSING):
        return StoreUnavailable(f"Expected to {doing} {shown}, but {said}. {_find_remedy(error)}", fault=fault)
    return StoreError(f"Expected to {doing} {shown}, but {said}. Look at the server's log.")


def _find_remedy(error: BaseException) -> str:
    """What to do about an error that may pass. Whoever tries again by itself says so where it does."""
    if isinstance(error, ConnectionRefusedError):
        return "Check the host and the port, and whether the server runs."
    if isinstance(error, socket.gaierror):
        return "Check the host name."
    if isinstance(error, ssl.SSLError):
        return "Check sslmode and the certificates."
    if isinstance(error, TimeoutError):
        return "The server did not answer in time: check the host, the port and the network."
    return "Try again, and look at the server if it lasts."
