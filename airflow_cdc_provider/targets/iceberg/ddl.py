"""DDL of Iceberg tables, and the change of columns by a copy.

Format 2, because pyiceberg, which writes fences without a JVM, cannot write format 3. Merge-on-read: the cost of a
batch depends on its own size, and maintenance compacts the delete files later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from airflow_cdc_provider.targets.sparksql.names import quoted

METADATA_FILES = 20
"""Old metadata files that are kept; the newest one contains the snapshots."""

TABLE_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.delete.granularity": "file",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": str(METADATA_FILES),
}


@dataclass(frozen=True)
class SchemaChange:
    """``added``: name and type of columns that the table needs before rows can be written. ``written_as``: the column
    under which a column of the copy is written if not under its own name. ``published``: the columns that the commit of
    the copy drops (None) or renames (new name)."""

    added: tuple[tuple[str, str], ...]
    written_as: Mapping[str, str]
    published: Mapping[str, str | None]


def schema_change(current: Mapping[str, str], desired: Mapping[str, str]) -> SchemaChange:
    """From the table's columns to those of a copy, both by name with their type in the table.

    A column whose type changes is written as a new column beside the old one, so readers see the old table until the
    commit, and the new type under the same name after it.
    """
    old = {name.lower(): (name, kind) for name, kind in current.items()}
    added: list[tuple[str, str]] = []
    written_as: dict[str, str] = {}
    published: dict[str, str | None] = dict.fromkeys(current)
    for name, kind in desired.items():
        if name.lower() not in old:
            added.append((name, kind))
        elif old[name.lower()][1] == kind:
            del published[old[name.lower()][0]]
        else:
            written_as[name] = new_name = _free_name(name, old)
            published[new_name] = name
            added.append((new_name, kind))
    return SchemaChange(tuple(added), written_as, published)


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """A failed attempt may have left such a column; the next commit drops it."""
    return next(free for n in count(1) if (free := f"_cdc_new{n}_{name}").lower() not in taken)


def add_columns(table: str, columns: tuple[tuple[str, str], ...]) -> str:
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{quoted(name)} {kind}' for name, kind in columns)})"
