"""Running activities, this node's own and those that others offer, with limits, timeouts and transactions."""
