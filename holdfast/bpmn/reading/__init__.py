"""From BPMN files to the values of `bpmn.model`: plain BPMN 2.0, and the extensions of Camunda 8 and Camunda 7.

    reading = read(path.read_bytes(), "order.bpmn")
    reading.definitions  # None if it is no BPMN at all
    reading.problems     # everything that is wrong with it, as far as reading can tell

`files` reads the whole, `containers` processes and their nodes, `tasks`, `events` and `loops` what these do, `zeebe` and
`camunda7` the extensions, `expressions` and `juel` the texts, `diagrams` the drawing.
"""

from holdfast.bpmn.reading.files import LIMITS, Reading, read
from holdfast.safe_xml import XmlLimits

__all__ = ["LIMITS", "Reading", "XmlLimits", "read"]
