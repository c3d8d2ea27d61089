"""Semantic models that others have written: Apache Ossie's, dbt's and Snowflake's, all read as Ossie's."""
