"""What elements do: one handler for each kind of work, all of them in `table`."""
