"""Steps from one version of the schema to the next, `0003_what_it_does.sql` and so on.

Numbers mean the same as for SQLite. A new database gets `schema.sql` at once; PostgreSQL begins with version 2.
"""
