"""BPMN 2.0: diagrams read, checked, compiled and run as programs. Pure: no clock, no file, no socket."""
