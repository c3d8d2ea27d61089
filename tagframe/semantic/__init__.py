"""Files that say what tables mean: descriptions, and the semantic models of Apache Ossie and dbt."""
