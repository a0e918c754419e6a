"""Running activities: here or for others, with limits, timeouts and transactions."""
