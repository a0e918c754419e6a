"""A store in memory: for tests, for simulations of many nodes on one database, and for engines that keep nothing."""
