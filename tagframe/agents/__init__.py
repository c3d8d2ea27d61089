"""A corpus as tools for agents: plain functions, their schemas, an MCP server of them; and a page to look at it."""

from tagframe.agents.schemas import Format, schema_of
from tagframe.agents.tools import Tools

__all__ = ["Format", "Tools", "schema_of"]
