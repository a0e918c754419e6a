"""From work to commits: the pump, its lanes, and what happens in a batch."""
