"""The built-in functions, one file per topic; `table` has them all."""
