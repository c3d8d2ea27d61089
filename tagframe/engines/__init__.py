"""Sources of tables: their names, their rows, and statements over them, but not their meaning.

A new kind of source is a file with an :class:`~tagframe.engines.base.Engine`, and a line in
:mod:`tagframe.engines.registry`.
"""
