"""The shell around the pure parts: batches of turns, activities, timers, wake-ups, recovery."""
