"""A corpus as tools for agents: plain functions, their schemas, and an MCP server of them."""

from tagframe.agents.schemas import Format, schema_of
from tagframe.agents.tools import Tools

__all__ = ["Format", "Tools", "schema_of"]
