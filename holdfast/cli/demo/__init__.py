"""The demo: a worker process is killed in the middle of its work, and nothing is lost."""
