"""The registry of retrieval methods. Each method is a file with a pure selector and a :class:`Method` record."""

from collections.abc import Mapping
from typing import Any

from tagframe.retrieval.method import Method
from tagframe.retrieval.methods.auto import AUTO
from tagframe.retrieval.methods.crush import CRUSH
from tagframe.retrieval.methods.exact import EXACT
from tagframe.retrieval.methods.greedy import GREEDY
from tagframe.retrieval.methods.mip import MIP
from tagframe.retrieval.methods.murre import MURRE
from tagframe.retrieval.methods.ranking import DENSE, HYBRID, LEXICAL

METHODS: Mapping[str, Method[Any, Any]] = {
    method.name: method for method in (AUTO, GREEDY, EXACT, MIP, MURRE, CRUSH, DENSE, LEXICAL, HYBRID)
}
"""The methods by the values of ``method=``; the first is the default."""

__all__ = ["METHODS", "Method"]
