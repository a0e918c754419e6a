"""The store in PostgreSQL, shared by many nodes."""
