"""Messages, events and broadcast signals: how they are published, and what they start."""
