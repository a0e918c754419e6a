"""Pure values and rules: what happens in an execution, without a clock, a random source, a file or a socket."""
