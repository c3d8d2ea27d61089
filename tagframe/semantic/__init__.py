"""What tables mean: descriptions of files and of a language model, and the semantic models of Apache Ossie and dbt."""
