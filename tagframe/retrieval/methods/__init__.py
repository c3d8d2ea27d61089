"""The registry of retrieval methods. Each method is a file with a pure selector and a :class:`Method` record."""

from typing import Any

from tagframe import plugins
from tagframe.errors import InvalidArgument, did_you_mean
from tagframe.retrieval.method import Method, P, R
from tagframe.retrieval.methods.auto import AUTO
from tagframe.retrieval.methods.crush import CRUSH
from tagframe.retrieval.methods.exact import EXACT
from tagframe.retrieval.methods.greedy import GREEDY
from tagframe.retrieval.methods.mip import MIP
from tagframe.retrieval.methods.murre import MURRE
from tagframe.retrieval.methods.ranking import DENSE, HYBRID, LEXICAL

METHODS: dict[str, Method[Any, Any]] = {
    method.name: method for method in (AUTO, GREEDY, EXACT, MIP, MURRE, CRUSH, DENSE, LEXICAL, HYBRID)
}
"""The methods by the values of ``method=``; the first is the default."""
OURS = frozenset(METHODS)
"""The names of tagframe's own methods."""


def register(method: Method[R, P]) -> Method[R, P]:
    """Make a method known by its name to everything that takes ``method=``, the shell included.

    A second method of the same name, as when a notebook's cell is run twice, replaces the first one.

    Returns:
        The same method.

    Raises:
        InvalidArgument: it is no :class:`Method`, or its name is that of a method of tagframe's own.
    """
    if not isinstance(method, Method) or not isinstance(method.name, str) or not method.name:
        raise InvalidArgument(f"a method is a tagframe.retrieval.Method with a name; got {method!r:.80}")
    if method.name in OURS:
        raise InvalidArgument(f"{method.name!r} is a method of tagframe's own; give yours another name")
    METHODS[method.name] = method
    return method


def method_named(name: str) -> Method[Any, Any]:
    """The method of this name: tagframe's own, a registered one, or one that an installed package brings.

    Raises:
        InvalidArgument: there is none.
        PluginFailed: the package's method cannot be loaded.
    """
    found = METHODS.get(name) or plugins.load("methods", name, lambda method: _under(name, method))
    if found is None:
        raise InvalidArgument(f"no method {name!r} in {did_you_mean(name, [*METHODS, *plugins.installed('methods')])}")
    return found


def _under(name: str, method: Any) -> Method[Any, Any]:
    if getattr(method, "name", name) != name:
        raise InvalidArgument(f"the method is called {method.name!r}; its entry point must be, too")
    return register(method)


__all__ = ["METHODS", "Method", "method_named", "register"]
