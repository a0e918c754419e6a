"""The models in examples/decisions load without warnings and decide what they say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast import dmn
from holdfast.feel import FeelWarning

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "decisions"
NAMES = ["loan_approval.dmn", "monthly_payment.dmn", "shipping_fees.dmn"]


def load(name: str) -> dmn.Model:
    return dmn.load((EXAMPLES / name).read_bytes())


def test_every_example_is_tested() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_example_has_nothing_to_warn_of(name: str) -> None:
    assert load(name).warnings == ()


@pytest.mark.parametrize(
    ("age", "history", "income", "outcome", "interest"),
    [
        (30, "good", 3_000, "approved", Decimal("0.039")),
        (30, "bad", 3_000, "declined", None),
        (20, "good", 3_000, "approved", Decimal("0.059")),
        (20, "good", 2_400, "to be looked at", Decimal("0.069")),
        (30, "unknown", 1_800, "declined", None),
    ],
)
def test_loan_is_approved_by_risk_and_affordability(
    age: int, history: str, income: int, outcome: str, interest: Decimal | None
) -> None:
    applicant = {"Age": age, "Monthly Income": income, "Monthly Expenses": 1_800, "Credit History": history}
    warnings: list[FeelWarning] = []

    result = load("loan_approval.dmn").evaluate(
        "Approval", {"Applicant": applicant, "Requested Amount": 12_000, "Months": 24}, warnings=warnings
    )

    assert result.value == {"Outcome": outcome, "Interest": interest}
    assert [one.name for one in result.trace] == ["Risk", "Affordability", "Approval"]
    assert warnings == []


def test_young_applicant_with_a_bad_history_is_a_high_risk_for_two_reasons() -> None:
    applicant = {"Age": 20, "Monthly Income": 1, "Monthly Expenses": 1, "Credit History": "bad"}

    result = load("loan_approval.dmn").evaluate("Risk", {"Applicant": applicant})

    assert result.value == "high"
    assert [rule.annotations[0][1] for rule in result.trace[0].tables[0].rules] == [
        "Did not pay back before",
        "Little is known yet",
    ]


@pytest.mark.parametrize(
    ("inputs", "fee"),
    [
        ({"Weight": 1, "Express": False, "Zone": "home"}, "4.90"),
        ({"Weight": 7, "Express": True, "Zone": "world"}, "40.40"),
        ({"Weight": 40, "Express": False, "Zone": "europe"}, "22.90"),
    ],
)
def test_shipping_fees_are_added_up(inputs: dict[str, Any], fee: str) -> None:
    assert load("shipping_fees.dmn").evaluate("Fee", inputs).value == Decimal(fee)


def test_monthly_payment_is_what_business_knowledge_says() -> None:
    result = load("monthly_payment.dmn").evaluate("Quote", {"Amount": 10_000, "Yearly Interest": 0.06, "Months": 36})

    assert result.value["Payment"] == Decimal("304.22")
    assert [offer["Months"] for offer in result.value["Offers"]] == [12, 24, 36]
    assert result.value["Offers"][2]["Payment"] == result.value["Payment"]


def test_monthly_payment_without_interest_is_a_plain_division() -> None:
    result = load("monthly_payment.dmn").evaluate("payment", {"Amount": 1_200, "Yearly Interest": 0, "Months": 12})

    assert result.value == 100
