"""Files in folders, and Delta and Iceberg tables, that DuckDB reads in place."""
