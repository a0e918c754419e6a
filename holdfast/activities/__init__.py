"""Activities: functions with side effects that programs of every kind call. Pure values; the engine runs them."""
