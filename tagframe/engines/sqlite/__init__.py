"""SQLite files, and the processes in which statements over them run."""
