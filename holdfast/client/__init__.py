"""Clients: the verbs of an engine for programs that run no workflow code."""
