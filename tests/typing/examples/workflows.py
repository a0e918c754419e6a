"""What the other examples call. Nothing here may be refused."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Context, activity, transaction, workflow


@dataclass
class Cart:
    customer: str


@workflow
async def order(ctx: Context, number: int, customer: str = "ann") -> bool:
    return number > 0


@workflow(name="ship it", version="2")
async def ship(ctx: Context, cart: Cart, cities: list[str] | None) -> Cart:
    return cart


@workflow
async def ping(ctx: Context) -> str:
    return "pong"


@workflow
async def named(ctx: Context, *, queue: str, count: int = 1) -> int:
    return count


async def plain(ctx: Context, number: int) -> bool:
    return number > 0


@activity
async def charge(amount: int, currency: str = "EUR") -> str:
    return f"{amount} {currency}"


@activity(start_to_close=5)
def count(words: list[str]) -> int:
    return len(words)


@transaction
def book(connection: object, amount: int) -> float:
    return amount / 100


@transaction(name="book it")
async def book_async(connection: object, amount: int) -> float:
    return amount / 100


class Payments:
    @activity
    async def refund(self, amount: int) -> str:
        return str(amount)

    @activity(start_to_close=1)
    def tell(self, text: str) -> int:
        return len(text)
