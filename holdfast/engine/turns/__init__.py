"""From work to commits: the pump, its workers, and what happens in a batch."""
