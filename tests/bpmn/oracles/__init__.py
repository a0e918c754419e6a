"""Judges of the interpreter that share nothing with it."""
