"""A corpus for agents (``tools``, their ``schemas``, an MCP ``server``) and for people (a ``page``).

The names and definitions of the tools are read here, without the modules that do their work: a server lists its tools
before it has imported these. ``python tools/write_stubs.py`` writes their file from the signatures and docstrings in
:mod:`tagframe.agents.tools`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WRITTEN = Path(__file__).with_name("definitions.json")


def names_of_tools(may_ask: bool, may_learn: bool) -> list[str]:
    """The names of the tools that may be used."""
    return [
        *"find_tables describe_tables plan_joins run_sql merge_tables".split(),
        *["ask"] * may_ask,
        *["learn"] * may_learn,
    ]


def definitions(may_ask: bool, may_learn: bool) -> list[dict[str, Any]]:
    """The definitions of the tools that may be used, as :func:`tagframe.agents.schemas.schema_of` gives them."""
    known = {one["name"]: one for one in json.loads(WRITTEN.read_text("utf-8"))}
    return [known[name] for name in names_of_tools(may_ask, may_learn)]
