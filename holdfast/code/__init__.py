"""Workflows as async functions: a deterministic event loop, the context, and matching against history. Pure."""
