"""A10: methods as activities, with the object that they belong to."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Activity, Context, Engine, activity, collect, transaction, workflow
from holdfast.errors import DuplicateName, InvalidDefinition
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine


class Payments:
    def __init__(self, bank: str) -> None:
        self.bank = bank

    @activity
    async def charge(self, amount: int) -> str:
        """Charge an amount."""
        return f"{self.bank}: {amount}"

    @activity(name="refund")
    def give_back(self, amount: int = 1) -> str:
        return f"{self.bank}: -{amount}"

    @activity
    @classmethod
    def name_class(cls, suffix: str) -> str:
        return cls.__name__ + suffix

    @activity
    @staticmethod
    def double(amount: int) -> int:
        return 2 * amount

    @staticmethod
    @activity
    def triple(amount: int) -> int:
        return 3 * amount

    def helper(self) -> None: ...


class CardPayments(Payments):
    @activity
    async def charge(self, amount: int) -> str:
        return f"card {await super().charge(amount)}"


@workflow
async def order(ctx: Context) -> list[Any]:
    return [
        await ctx.run(Payments.charge, 1),
        await ctx.run(bound.charge, 2),
        await ctx.run("charge", 3),
        await ctx.run(bound.charge.with_options(schedule_to_close=60), amount=4),
        await ctx.run(Payments.give_back),
        await ctx.run(Payments.name_class, "!"),
        await ctx.run(bound.double, 4),  # type: ignore[call-overload]  # no type says which methods are static
        await ctx.run(Payments.triple, 4),  # type: ignore[call-overload]
    ]


bound = Payments("workflows know no bank")


async def test_A10_methods_run_with_their_object(open_engine: OpenEngine) -> None:
    engine = await open_engine(order, *collect(Payments("bank")))

    result = await (await engine.start(order)).result()

    assert result == ["bank: 1", "bank: 2", "bank: 3", "bank: 4", "bank: -1", "Payments!", 8, 12]


async def test_A10_method_that_is_decorated_by_hand_runs() -> None:
    class Plain:
        def __init__(self) -> None:
            self.seen: list[int] = []

        async def see(self, number: int) -> int:
            self.seen.append(number)
            return number

    plain = Plain()
    see = activity(plain.see)

    @workflow
    async def watch(ctx: Context) -> int:
        return await ctx.run(see, 5)

    async with TestEngine(workflows=[watch], activities=[see]) as engine:
        assert await (await engine.start(watch)).result() == 5
    assert plain.seen == [5]


def test_collect_finds_decorated_methods_in_their_order() -> None:
    names = [one.name for one in collect(Payments("bank"))]

    assert names == ["charge", "refund", "name_class", "double", "triple"]
    assert [one.signature.names for one in collect(Payments("bank"))][:3] == [("amount",), ("amount",), ("suffix",)]


async def test_collect_takes_the_methods_of_the_subclass() -> None:
    charge = collect(CardPayments("bank"))[0]

    assert await charge(5) == "card bank: 5"
    assert CardPayments.name_class("?") == "CardPayments?"


async def test_methods_stay_callable_for_tests() -> None:
    payments = Payments("bank")

    assert await payments.charge(1) == "bank: 1"
    assert payments.give_back(2) == "bank: -2"
    assert payments.charge.__doc__ == "Charge an amount."
    assert (Payments.double(2), payments.triple(2)) == (4, 6)  # type: ignore[call-arg]


def test_A10_method_without_its_object_is_refused() -> None:
    with pytest.raises(
        InvalidDefinition, match=r"'charge' is a method of Payments without one\. .*collect\(Payments\(…\)\)"
    ):
        Engine("memory://", activities=[Payments.charge])
    with pytest.raises(InvalidDefinition, match=r"it got the class\. Write collect\(Payments\(…\)\)"):
        collect(Payments)


def test_object_among_the_activities_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidDefinition, match=r"found an object of Payments\. Write activities=\[\*collect\("):
        Engine("memory://", activities=[Payments("bank")])  # type: ignore[list-item]


def test_objects_without_activities_are_refused() -> None:
    with pytest.raises(InvalidDefinition, match="but an object of object has none"):
        collect(object())


def test_override_that_is_not_decorated_is_refused() -> None:
    class Forgetful(Payments):
        async def charge(self, amount: int) -> str:  # type: ignore[override]
            return "?"

    with pytest.raises(InvalidDefinition, match=r"Forgetful\.charge to be an activity.*Add @activity"):
        collect(Forgetful("bank"))


def test_activity_below_classmethod_is_refused() -> None:
    class Swapped:
        @classmethod
        @activity
        def name_class(cls) -> str:
            return cls.__name__

    with pytest.raises(InvalidDefinition, match="@activity to stand above @classmethod"):
        collect(Swapped())


def test_two_objects_of_one_class_claim_the_same_names() -> None:
    one = Payments("one")
    assert len(Engine("memory://", activities=[*collect(one), *collect(one)]).catalog.activities) == 5

    with pytest.raises(DuplicateName, match="two are called 'charge'"):
        Engine("memory://", activities=[*collect(one), *collect(Payments("two"))])


def test_method_in_a_process_is_refused() -> None:
    class Heavy:
        def plain(self) -> None: ...

    with pytest.raises(InvalidDefinition, match="whose object is in this process alone"):
        activity(executor="process")(Heavy().plain)


class Heavy:
    @activity(executor="process")
    def compute(self, number: int) -> int:
        return number


def test_decorated_method_in_a_process_is_refused_at_registration() -> None:
    with pytest.raises(InvalidDefinition, match="whose object is in this process alone"):
        Engine("memory://", activities=collect(Heavy()))


def test_transaction_may_be_a_method() -> None:
    class Ledger:
        @transaction
        def post(self, connection: Any, amount: int) -> int:
            return amount

    (post,) = collect(Ledger())

    assert post.signature.names == ("amount",)
    assert post(None, 3) == 3


def test_activity_of_a_module_may_be_grouped_in_a_class() -> None:
    @activity
    async def ship(item: str) -> str:
        return item

    class Group:
        ship_it = ship

    looked_up: list[Any] = [Group.ship_it, Group().ship_it]
    assert all(one is ship for one in looked_up)


def test_activity_that_is_decorated_twice_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="is decorated already"):
        activity(Payments.charge)


def typed(payments: Payments) -> tuple[Activity[[int], str], Activity[[int], str]]:
    """For the type checker: the object is no parameter of a method that is an activity."""
    return payments.charge, Payments.charge
