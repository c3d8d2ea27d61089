"""A corpus for agents (``tools``, their ``schemas``, an MCP ``server``) and for people (a ``page``)."""
