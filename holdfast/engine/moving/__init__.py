"""Everything, or some executions, from one database to another."""
