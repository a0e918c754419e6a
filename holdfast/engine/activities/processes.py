"""Activities that run in worker processes: arguments and results travel as JSON, exceptions as failures."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.activities.definitions import Activity
from holdfast.core import payloads
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.payloads import Payload
from holdfast.core.signatures import Signature
from holdfast.errors import InvalidArguments, PayloadError


class FunctionPath(NamedTuple):
    """Where a worker process finds the function of an activity."""

    module: str
    qualname: str
    activity: str


class ProcessReturned(msgspec.Struct, frozen=True, tag=True):
    """The answer of a worker process whose function returned."""

    result: Payload


class ProcessRaised(msgspec.Struct, frozen=True, tag=True):
    """The answer of a worker process whose function raised an exception, or whose result cannot be encoded."""

    failure: Failure


class RaisedInProcess(Exception):
    """The function raised in its worker process. Failures travel instead of exceptions, many of which cannot be pickled."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


_ANSWER: Final[msgspec.json.Decoder[ProcessReturned | ProcessRaised]] = msgspec.json.Decoder(ProcessReturned | ProcessRaised)


class ProcessPool:
    """A pool of worker processes, started when it is first needed, and replaced when one of its processes dies."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool: ProcessPoolExecutor | None = None

    async def call(self, activity: Activity[..., Any], arguments: Payload, limit: int) -> Payload:
        """Run an activity's function. Raises RaisedInProcess, or BrokenExecutor if its process died."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._most, mp_context=get_context("spawn"))
        pool, function = self._pool, activity.function
        path = FunctionPath(function.__module__, function.__qualname__, activity.name)
        try:
            answer = await asyncio.get_running_loop().run_in_executor(
                pool, run_in_worker, path, bytes(arguments.data), limit
            )
        except BrokenExecutor:
            if self._pool is pool:
                self._pool = None
                pool.shutdown(wait=False)
            raise
        outcome = _ANSWER.decode(answer)
        if isinstance(outcome, ProcessRaised):
            raise RaisedInProcess(outcome.failure)
        return outcome.result

    def close(self) -> None:
        """Shut the pool down without waiting for calls that are under way."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def run_in_worker(path: FunctionPath, arguments: bytes, limit: int) -> bytes:
    """Runs in the worker process: find the function, call it, and answer ProcessReturned or ProcessRaised as JSON."""
    outcome: ProcessReturned | ProcessRaised
    try:
        outcome = ProcessReturned(_call(path, arguments, limit))
    except KeyboardInterrupt:
        raise  # the user ends everything
    except (InvalidArguments, PayloadError) as error:
        outcome = ProcessRaised(msgspec.structs.replace(describe_exception(error), non_retryable=True))
    except BaseException as error:  # noqa: BLE001 - whatever user code raises is recorded, SystemExit too
        outcome = ProcessRaised(describe_exception(error))
    return msgspec.json.encode(outcome)


def _call(path: FunctionPath, arguments: bytes, limit: int) -> Payload:
    found: Any = importlib.import_module(path.module)
    for part in path.qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, Activity):  # the module keeps the plain function and decorates it under another name
        signature, function = Signature(found, f"activity '{path.activity}'", skip=0), found
    else:
        signature, function = found.signature, found.function
    result = function(*signature.decode_arguments(Payload(msgspec.Raw(arguments))))
    return payloads.encode(result, f"the result of {signature.what}", limit)
