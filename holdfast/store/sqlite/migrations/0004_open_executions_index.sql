-- The twin of a migration of PostgreSQL: the index of open executions has always been as statements ask for it here.
PRAGMA user_version = 4;
