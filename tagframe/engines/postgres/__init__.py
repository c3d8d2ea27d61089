"""PostgreSQL servers, read in place."""
