"""Calls from other processes: how they travel, and the server in the process that owns a database file."""
