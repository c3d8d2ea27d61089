"""What has changed between two states of the same tables, in words."""

from __future__ import annotations

from collections.abc import Mapping

from tagframe.corpus.profile import TableProfile


def changes(before: Mapping[str, TableProfile], now: Mapping[str, TableProfile]) -> tuple[str, ...]:
    """A sentence for each table that is new, gone or different, sorted by its id."""
    found = []
    for id in sorted({*before, *now}):
        if id not in now:
            found.append(f"{id} is gone")
        elif id not in before:
            found.append(f"{id} is new")
        elif parts := _differences(before[id], now[id]):
            found.append(f"{id}: {'; '.join(parts)}")
    return tuple(found)


def _differences(before: TableProfile, now: TableProfile) -> list[str]:
    old = {column.name: column for column in before.columns}
    new = {column.name: column for column in now.columns}
    found = [f"new column {name}" for name in new if name not in old]
    found += [f"column {name} is gone" for name in old if name not in new]
    for name in (name for name in new if name in old):
        was, is_now = ((one.declared_type or one.family) for one in (old[name], new[name]))
        if was != is_now:
            found.append(f"column {name} is {is_now}, it was {was}")
    if before.rows != now.rows:
        found.append(f"{_rows(now)}, it had {_rows(before)}")
    for what in ("primary_key", "foreign_keys"):
        if getattr(before, what) != getattr(now, what):
            found.append(f"another {what.replace('_', ' ').removesuffix('s')}")
    return found or (["other cells"] if before != now else [])


def _rows(profile: TableProfile) -> str:
    return "rows that are not counted" if profile.rows is None else f"{profile.rows:,} rows"
