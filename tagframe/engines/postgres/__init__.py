"""PostgreSQL servers, read where they are."""
