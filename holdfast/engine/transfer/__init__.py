"""Transfers of a whole database to another, and exports and imports of single executions."""
