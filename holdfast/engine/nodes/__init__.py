"""This node among others: leases, take-over, recovery, and what only one of them does at a time."""
