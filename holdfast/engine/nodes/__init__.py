"""This node among those that share its store: heartbeats and leases, take-over, recovery, retention."""
