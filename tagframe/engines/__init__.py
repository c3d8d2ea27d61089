"""Sources of tables: their names, their rows, and statements over them, but not their meaning.

A new kind of source is a file with an :class:`~tagframe.engines.base.Engine`, and a line in
:mod:`tagframe.engines.registry`. Over :mod:`~tagframe.engines.base`, which says what every engine can do, are:

- the SQL middle: :mod:`~tagframe.engines.pushdown` (tables that are read by statements, and parts of a merge that run
  in the source), :mod:`~tagframe.engines.sql_text`, :mod:`~tagframe.engines.sql_reader` (what a statement reads, joins
  and compares);
- the sources: ``files``, :mod:`~tagframe.engines.frames`, ``sqlite``, ``duckdb``, ``postgres``, ``other_servers``;
- the processes in which untrusted statements run: :mod:`~tagframe.engines.worker_pool` starts them,
  :mod:`~tagframe.engines.worker_program` is what they run, a source's ``worker`` is its part, and rows that are sent
  with a statement are files (:mod:`~tagframe.engines.sent_rows`).

:mod:`~tagframe.engines.cells` says which dtypes hold cells, and what tests of them mean.
"""
