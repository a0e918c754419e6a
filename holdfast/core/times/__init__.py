"""When something is due: durations, dates, cycles, cron lines and calendars, with time zones. Pure arithmetic."""
