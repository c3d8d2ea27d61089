"""A corpus for agents and to look at: plain functions (``tools``), their ``schemas``, an MCP ``server``; a ``page``."""
