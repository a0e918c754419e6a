"""An order and its workflow begin in one transaction; what the workflow books commits together with that it did."""

import asyncio
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast import Context, Engine, TransactionWork, transaction, workflow


@transaction
def ship(db: sqlite3.Connection, order: str) -> int:
    """Runs once for good: if the process dies before the commit, nothing happened; after it, the workflow knows."""
    db.execute("UPDATE orders SET status = 'shipped' WHERE name = ?", (order,))
    (left,) = db.execute("UPDATE stock SET count = count - 1 RETURNING count").fetchone()
    return int(left)


@workflow
async def fulfil(ctx: Context, order: str) -> int:
    return await ctx.transaction(ship, order)


def create_tables(db: sqlite3.Connection, _work: TransactionWork) -> None:
    db.execute("CREATE TABLE orders (name TEXT, status TEXT)")
    db.execute("CREATE TABLE stock AS SELECT 5 AS count")


def place_order(db: sqlite3.Connection, work: TransactionWork, order: str, count: int) -> None:
    """Either the order is there and its workflow runs, or neither."""
    work.start(fulfil, order, workflow_id=order)
    db.execute("INSERT INTO orders VALUES (?, 'new')", (order,))
    if db.execute("SELECT count FROM stock").fetchone()[0] < count:
        raise ValueError("out of stock")


async def main() -> None:
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'shop.db'}"
        async with Engine(url, workflows=[fulfil], activities=[ship]) as engine:
            await engine.transaction(create_tables)
            try:
                await engine.transaction(lambda db, work: place_order(db, work, "order-0", 99))
            except ValueError as error:
                print("refused:", error)
            await engine.transaction(lambda db, work: place_order(db, work, "order-1", 1))
            left = await engine.handle("order-1").result()
            orders = await engine.transaction(lambda db, _work: db.execute("SELECT * FROM orders").fetchall())
            print(f"order-1: {orders}, {left} in stock")


if __name__ == "__main__":
    asyncio.run(main())
