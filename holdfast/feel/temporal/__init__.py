"""Dates, times, date and times and durations: what they are, their texts, their order and their arithmetic."""
