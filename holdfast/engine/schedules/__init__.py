"""Schedules that fire: who looks when, and what is written together."""
