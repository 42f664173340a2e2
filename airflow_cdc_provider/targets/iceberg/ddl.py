"""How an Iceberg table is made, grown, and given other columns.

Format 2, because the library that fences without a JVM cannot write format 3. Deletes and updates are written beside
the data (merge on read): a batch of changes then costs what it changes, and upkeep folds the deletes in later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from airflow_cdc_provider.targets.sparksql.names import quoted

METADATA_FILES = 20
"""Old versions of the metadata file that are kept; the snapshots themselves stand in the newest one."""

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
class Reshape:
    """``added``: columns the table needs before rows can be written, name and type. ``written_as``: under which name
    a column of the copy is written, where not under its own. ``published``: what becomes of columns in the commit that
    makes the copy current: None drops one, a name renames it."""

    added: tuple[tuple[str, str], ...]
    written_as: Mapping[str, str]
    published: Mapping[str, str | None]


def reshape(held: Mapping[str, str], wanted: Mapping[str, str]) -> Reshape:
    """From the table's columns to those of a copy, both by name with their type in the table.

    A column whose type changes is written as a new one beside the old one; so readers see the old table until the
    commit, and after it the new one under the old name.
    """
    old = {name.lower(): (name, kind) for name, kind in held.items()}
    added: list[tuple[str, str]] = []
    written_as: dict[str, str] = {}
    published: dict[str, str | None] = dict.fromkeys(held)
    for name, kind in wanted.items():
        if name.lower() not in old:
            added.append((name, kind))
        elif old[name.lower()][1] == kind:
            del published[old[name.lower()][0]]
        else:
            written_as[name] = beside = _free_name(name, old)
            published[beside] = name
            added.append((beside, kind))
    return Reshape(tuple(added), written_as, published)


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """An attempt that died may have left one behind; the next commit drops it."""
    return next(free for n in count(1) if (free := f"_cdc_new{n}_{name}").lower() not in taken)


def add_columns(table: str, columns: tuple[tuple[str, str], ...]) -> str:
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{quoted(name)} {kind}' for name, kind in columns)})"
