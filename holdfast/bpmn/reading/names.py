"""The namespaces of BPMN files, and the local names of what is in them."""

from __future__ import annotations

from typing import Final

BPMN: Final = "{http://www.omg.org/spec/BPMN/20100524/MODEL}"
BPMN_DI: Final = "{http://www.omg.org/spec/BPMN/20100524/DI}"
DC: Final = "{http://www.omg.org/spec/DD/20100524/DC}"
DI: Final = "{http://www.omg.org/spec/DD/20100524/DI}"
ZEEBE: Final = "{http://camunda.org/schema/zeebe/1.0}"
CAMUNDA_7: Final = (
    "{http://camunda.org/schema/1.0/bpmn}",
    "{http://activiti.org/bpmn}",
    "{http://flowable.org/bpmn}",
)
"""Camunda 7 and Flowable began as Activiti, and share most of its attributes."""
XSI_TYPE: Final = "{http://www.w3.org/2001/XMLSchema-instance}type"

SUB_PROCESSES: Final = frozenset(("subProcess", "transaction", "adHocSubProcess"))
EVENT_DEFINITION: Final = "EventDefinition"
"""How the names of all event definitions end."""
