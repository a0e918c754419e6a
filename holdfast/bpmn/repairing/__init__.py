"""Repairing executions of processes: incidents, and what people change from outside."""
