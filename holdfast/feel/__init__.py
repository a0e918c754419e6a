"""FEEL, the expression language of DMN 1.5 and BPMN, with Camunda's additions.

    from holdfast import feel

    feel.evaluate("order.total * 1.19", {"order": {"total": 100}})  # Decimal('119.00')
    expression = feel.compile('order.total > 100 and list contains(customer.tags, "vip")')
    expression.evaluate({"order": {"total": 120}, "customer": {"tags": ["vip"]}})  # True
    feel.unary_tests("[1..5], > 10", 3)  # True

Pure: no input or output, no clock, no randomness and no Python code but those that are given.
"""

from holdfast.errors import FeelError, FeelLimitExceeded, FeelSyntaxError
from holdfast.feel.expressions import Expression, UnaryTests, compile, compile_unary_tests, evaluate, unary_tests
from holdfast.feel.json_values import from_json, to_json
from holdfast.feel.running import FeelWarning
from holdfast.feel.temporal.values import DaysTimeDuration, YearsMonthsDuration
from holdfast.feel.values import Function, Range

__all__ = [
    "DaysTimeDuration",
    "Expression",
    "FeelError",
    "FeelLimitExceeded",
    "FeelSyntaxError",
    "FeelWarning",
    "Function",
    "Range",
    "UnaryTests",
    "YearsMonthsDuration",
    "compile",
    "compile_unary_tests",
    "evaluate",
    "from_json",
    "to_json",
    "unary_tests",
]
