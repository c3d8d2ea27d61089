"""Write the stubs of the operators' derived forms, and the definitions of the agents' tools, from their declarations.

    python tools/write_stubs.py           # after an operator or a tool, or the arguments of one, have changed
    python tools/write_stubs.py --check   # lists the files that are out of date, and exits with 1

Type checkers cannot follow functions that are derived at run time, and a keyword cannot be added to a ``ParamSpec``
(PEP 612). So the functions are written to ``tagframe/operators/functions.pyi``, the methods to
``tagframe/accessor/operator_methods.pyi``, and the names of the functions to ``tagframe/__init__.pyi``.
The tools go to ``tagframe/agents/definitions.json``, which a server reads at its start.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "tagframe"
sys.path.insert(0, str(PACKAGE.parent))

from tagframe.accessor.operator_methods import FUNCTIONS  # noqa: E402
from tagframe.agents import WRITTEN as DEFINITIONS  # noqa: E402
from tagframe.agents import names_of_tools  # noqa: E402
from tagframe.agents.schemas import schema_of  # noqa: E402
from tagframe.agents.tools import Tools  # noqa: E402
from tagframe.operators import OPERATORS  # noqa: E402
from tagframe.operators.operator import (  # noqa: E402
    ADDED,
    function,
    method,
)

WRITTEN = (
    "# Written by tools/write_stubs.py from the declarations of the operators; not to be changed by hand.\n# fmt: off\n"
)
BEGIN, END = "# operators: written by tools/write_stubs.py", "# end of operators"
OURS = {
    "AsyncBatches": "from tagframe.operators.batches import AsyncBatches",
    "AsyncFrames": "from tagframe.operators.batches import AsyncFrames",
    "Batches": "from tagframe.operators.batches import Batches",
    "CallSettings": "from tagframe.config import CallSettings",
    "Frames": "from tagframe.operators.batches import Frames",
    "ForeignFrame": "from tagframe.interop import ForeignFrame",
    "IfExists": "from tagframe.operators.parquet_folder import IfExists",
    "Literal": "from typing import Literal",
    "Path": "from pathlib import Path",
    "Quote": "from tagframe.lm import Quote",
    "SearchSettings": "from tagframe.config import SearchSettings",
    "Unpack": "from typing import Unpack",
    "os": "import os",
    "overload": "from typing import overload",
    "pd": "import pandas as pd",
}
"""The imports of the names that the forms add to declarations."""


def names_of(module: str) -> dict[str, str]:
    """The imports of a module's names: its own imports, and imports from it for the names that it defines."""
    found = {}
    for node in ast.walk(ast.parse(Path(inspect.getfile(importlib.import_module(module))).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                renamed = f" as {alias.asname}" if alias.asname else ""
                found[alias.asname or alias.name] = f"from {node.module} import {alias.name}{renamed}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = f"import {alias.name}" + (
                    f" as {alias.asname}" if alias.asname else ""
                )
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.ClassDef):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = (
                [node.name] if isinstance(node, ast.ClassDef) else [t.id for t in targets if isinstance(t, ast.Name)]
            )
            found.update((name, f"from {module} import {name}") for name in names if name not in found)
    return found


def imported_as(statement: str, name: str) -> object:
    """The name that an import defines."""
    found: dict[str, object] = {}
    exec(statement, found)
    return found[name]


class Stub:
    """A stub file: definitions, and the imports that they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._imports: dict[str, str] = {}

    def define(
        self,
        name: str,
        parameters: Iterable[Parameter],
        returns: str,
        known: Mapping[str, str],
        *,
        doc: str | None = None,
        head: str = "def",
        overloads: bool = False,
        indent: str = "",
    ) -> None:
        """Add a function; ``known`` has the imports of the names in its types."""
        parts, bare = [], True
        for given in parameters:
            if given.kind is given.VAR_POSITIONAL:
                bare = False
            if given.kind is given.KEYWORD_ONLY and bare:
                parts.append("*")
                bare = False
            sign = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
            typed = "" if given.annotation is given.empty else f": {self._typed(given.annotation, known)}"
            default = "" if given.default is given.empty else f" = {given.default!r}"
            parts.append(f"{sign}{given.name}{typed}{default}")
        result = self._typed(returns, known)
        if overloads:
            self.lines.append(f"{indent}@{self._typed('overload', known)}")
        body = textwrap.wrap(" ".join(f"{part.replace(' ', chr(0))}," for part in parts), 116 - len(indent))
        end = ":" if doc else ": ..."
        self.lines += [f"{indent}{head} {name}("]
        self.lines += [f"{indent}    {line.replace(chr(0), ' ')}" for line in body]
        self.lines[-1] = self.lines[-1].removesuffix(",")
        self.lines += [f"{indent}) -> {result}{end}"]
        if doc:
            self.lines += textwrap.indent(f'"""{doc.strip()}\n"""', f"{indent}    ").split("\n")

    def _typed(self, annotation: str, known: Mapping[str, str]) -> str:
        for node in ast.walk(ast.parse(annotation, mode="eval")):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                imported = known.get(node.id) or OURS[node.id]
                if imported_as(self._imports.setdefault(node.id, imported), node.id) is not imported_as(
                    imported, node.id
                ):
                    raise ValueError(f"{node.id} is {imported!r} here, and {self._imports[node.id]!r} in the same file")
        return annotation

    def text(self) -> str:
        """The file."""
        names: dict[str, list[str]] = {}
        for imported in sorted(self._imports.values()):
            module, _, name = imported.partition(" import ")
            names.setdefault(module, []).append(name)
        imports = [module + f" import {', '.join(several)}" * any(several) for module, several in names.items()]
        return "\n".join([WRITTEN, *imports, "", *self.lines, ""])


def functions() -> str:
    """``functions.pyi``: each operator for frames and for batches, with a result or a quote, blocking or awaited."""
    stub = Stub()
    for operator in OPERATORS.values():
        known = names_of(operator.steps.__module__)
        for awaited in (False, True):
            name, head = (f"a{operator.name}", "async def") if awaited else (operator.name, "def")
            own = list(inspect.signature(function(operator)).parameters.values())
            doc = getattr(importlib.import_module("tagframe.operators.functions"), name).__doc__
            batches = (
                "pd.DataFrame"
                if operator.over in ("whole", "best", "nearest")
                else "AsyncBatches"
                if awaited
                else "Batches"
            )
            frames = "AsyncFrames" if awaited else "Frames"
            for returns, changed in (
                ("pd.DataFrame", {"quote": ("Literal[False]", False)}),
                ("Quote", {"quote": ("Literal[True]", Parameter.empty)}),
                (batches, {"frame": (frames, Parameter.empty), "to": ("None", None)}),
                (
                    "Path",
                    {
                        "frame": (frames, Parameter.empty),
                        "to": ("str | os.PathLike[str]", Parameter.empty),
                        "if_exists": ("IfExists", "error"),
                    },
                ),
            ):
                parameters = [
                    one.replace(annotation=changed[one.name][0], default=changed[one.name][1])
                    if one.name in changed
                    else one.replace(annotation=one.annotation.replace("pd.DataFrame", "pd.DataFrame | ForeignFrame"))
                    for one in own
                    if one.name in changed or one.name not in ADDED
                ]
                stub.define(name, parameters, returns, known, doc=doc, head=head, overloads=True)
                doc = None
    return stub.text()


def methods() -> str:
    """``operator_methods.pyi``."""
    stub = Stub()
    stub.lines += [
        "FUNCTIONS: dict[str, str]",
        "",
        "class OperatorMethods:",
        f"    _frame: {stub._typed('pd.DataFrame', {})}",
    ]
    stub.lines += ["    def __init__(self, frame: pd.DataFrame) -> None: ..."]
    for operator in OPERATORS.values():
        derived = method(operator)
        known, doc = names_of(operator.steps.__module__), derived.__doc__
        for returns, annotation, default in (
            ("pd.DataFrame", "Literal[False]", False),
            ("Quote", "Literal[True]", Parameter.empty),
        ):
            parameters = [
                one.replace(annotation=annotation, default=default) if one.name == "quote" else one
                for one in inspect.signature(derived).parameters.values()
            ]
            stub.define(operator.name, parameters, returns, known, doc=doc, overloads=True, indent="    ")
            doc = None
    for name, module in FUNCTIONS.items():
        called: Callable[..., Any] = getattr(importlib.import_module(module), name)
        derived = getattr(importlib.import_module("tagframe.accessor").TagAccessor, name)
        own = inspect.signature(derived)
        stub.define(
            name,
            own.parameters.values(),
            own.return_annotation,
            names_of(called.__module__),
            doc=derived.__doc__,
            indent="    ",
        )
    return stub.text()


def public_names() -> str:
    """``__init__.pyi`` with the current functions."""
    text = (PACKAGE / "__init__.pyi").read_text("utf-8")
    before, rest = text.split(f"{BEGIN}\n")
    names = sorted(name for operator in OPERATORS for name in (operator, f"a{operator}"))
    lines = "".join(f"from .operators.functions import {name} as {name}\n" for name in names)
    return f"{before}{BEGIN}\n{lines}{END}\n{rest.split(f'{END}{chr(10)}')[1]}"


def definitions() -> str:
    """``definitions.json``: all tools."""
    schemas = [schema_of(getattr(Tools, name)) for name in names_of_tools(may_ask=True, may_learn=True)]
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the stubs and the definitions, or check them."""
    written = {
        PACKAGE / "operators" / "functions.pyi": functions,
        PACKAGE / "accessor" / "operator_methods.pyi": methods,
        PACKAGE / "__init__.pyi": public_names,
        DEFINITIONS: definitions,
    }
    stale = [path for path, text in written.items() if not path.exists() or path.read_text("utf-8") != text()]
    for path in stale:
        if "--check" not in arguments:
            path.write_text(written[path](), "utf-8")
        print(f"{path.relative_to(PACKAGE.parent)} {'is out of date' if '--check' in arguments else 'written'}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
