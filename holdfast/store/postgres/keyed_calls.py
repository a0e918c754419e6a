"""Calls outside of batches that carry a key: what they change, and what they return, is committed at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from holdfast.store.once import KeyedCall, NothingDone, read_answer
from holdfast.store.postgres.drivers import Connection
from holdfast.store.postgres.queues import put_requests
from holdfast.store.rows import RequestRow


async def do_once(
    connection: Connection,
    sql: Mapping[str, str],
    call: KeyedCall | None,
    work: Callable[[Connection], Awaitable[int]],
) -> int:
    """Do work within the open transaction, unless its call is remembered; what it returned, now or then.

    The row of the key is inserted first: whoever has the same key waits there until this transaction has ended. No batch
    waits for it, since these kinds of keys are of such calls alone.
    """
    if call is None:
        return await work(connection)
    request = call.request
    values = (*call.key, request.execution_id, request.sequence, request.expires_at, None)
    while True:
        await connection.fetch(sql["forget_request"], *call.key, call.now)
        if await connection.fetch(sql["put_request_once"], *values):
            break
        found = await connection.fetch(sql["read_request"], *call.key, call.now)
        if found:
            return read_answer(RequestRow(*found[0]))
        # It was removed with its execution meanwhile, or has expired.
    answer = await work(connection)
    if not answer and not call.remembers_refusal:
        raise NothingDone
    await put_requests(connection, sql, [call.answered(answer)], call.now)
    return answer
