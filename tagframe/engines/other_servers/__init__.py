"""Servers with a SQLAlchemy dialect, other than PostgreSQL: only our own SELECTs run there."""
