"""DMN 1.1 to 1.6: decision models, their tables and graphs, evaluated with FEEL.

    from holdfast import dmn

    model = dmn.load(Path("loan.dmn").read_bytes())
    result = model.evaluate("Approval", {"Age": 42, "Income": 3000})
    result.value  # "approved"
    result.trace.to_json()  # which decisions were made, with which inputs, by which rules

Pure: no input or output, no clock and no randomness but those that are given. Models that
import others are loaded with these: `dmn.load([model, imported])`.
"""

from holdfast.dmn.evaluating import Model, Result, Summary, load
from holdfast.dmn.model import Definitions, HitPolicy
from holdfast.dmn.traces import Trace, TracedDecision, TracedRule, TracedTable
from holdfast.errors import DmnError

__all__ = [
    "Definitions",
    "DmnError",
    "HitPolicy",
    "Model",
    "Result",
    "Summary",
    "Trace",
    "TracedDecision",
    "TracedRule",
    "TracedTable",
    "load",
]
