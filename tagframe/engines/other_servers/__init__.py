"""Servers that SQLAlchemy has a dialect for, beside PostgreSQL: nothing runs there but SELECTs of our own."""
