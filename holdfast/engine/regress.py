"""By what a node notices that the database went back to an earlier state."""

from __future__ import annotations

from enum import StrEnum


class Regress(StrEnum):
    """By what a node noticed that the database is at an earlier state than it was, or may be."""

    OWN_ROW = "the last heartbeats of this node are missing in it"
    TIMELINE = "its server is on another timeline than before"
    EXECUTION = "an execution is at an earlier version than this node committed"
    REMOVED = "this node was silent, and others removed it"
    """No proof: other nodes remove a node whose lease has run out, when they have taken over from it."""
