"""Folders and prefixes that a replicator reads or writes. What one of them removes must not be another one: the command
`delete` removes staging, a dropped table its folder, and a feed reads every file that it finds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from airflow_cdc_provider.core.spec.definition import Definition, Target
from airflow_cdc_provider.core.spec.selection import is_pattern
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.loader.types import table_naming

STAGING, TABLES = "staging", "the tables of a target"
ANY_TABLE = "*"
TABLE_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_]*")
ICEBERG, NAMESPACE = "iceberg", "cdc"
"""The type of target with a folder for the namespace of its tables, and the default one."""


@dataclass(frozen=True)
class UsedFolder:
    """``key``: path of its key in the YAML. ``parts``: from the bucket or the root on; the last one may be
    ``ANY_TABLE``."""

    what: str
    key: tuple[str | int, ...]
    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        scheme, bucket, *path = self.parts
        where = f"/{'/'.join(path)}" if scheme == FOLDER else f"{scheme}://{'/'.join((bucket, *path))}"
        return f"{self.what} in {where}"


def used_folders(definition: Definition) -> Iterator[UsedFolder]:
    yield UsedFolder(STAGING, ("staging", "location"), (*_parts(definition.staging.location), definition.name))
    if feed := str(definition.source.options.get("location") or ""):
        yield UsedFolder("the files of the source", ("source", "location"), _parts(feed))
    for number, target in enumerate(definition.all_targets):
        key = ("targets", number) if definition.targets else ("target",)
        if stage := str(target.options.get("stage") or ""):
            yield UsedFolder("the stage of a target", (*key, "stage"), _parts(stage))
        if target.location:
            yield from _of_tables(definition, target, (*key, "location"))


def overlaps(folders: Sequence[UsedFolder]) -> Iterator[tuple[UsedFolder, UsedFolder]]:
    """Pairs of which one is the other, or is below it."""
    yield from ((one, other) for one, other in combinations(folders, 2) if _overlap(one, other))


def overlaps_between(
    folders: Sequence[UsedFolder], others: Sequence[UsedFolder]
) -> Iterator[tuple[UsedFolder, UsedFolder]]:
    yield from ((one, other) for one, other in product(folders, others) if _overlap(one, other))


def _of_tables(definition: Definition, target: Target, key: tuple[str | int, ...]) -> Iterator[UsedFolder]:
    parts = _parts(target.location)
    if target.type == ICEBERG:
        yield UsedFolder(TABLES, key, (*parts, target.catalog.rpartition(".")[2] or NAMESPACE))
        return
    name_of = table_naming(target.type)
    for rule in definition.tables:
        if not rule.has_copy_in(target.name):
            continue
        name = rule.target or ("" if is_pattern(rule.source) else name_of(rule.source))
        fixed = bool(name) and TABLE_NAME.fullmatch(name)
        yield UsedFolder(TABLES, key, (*parts, name if fixed else ANY_TABLE))


def _overlap(one: UsedFolder, other: UsedFolder) -> bool:
    """Tables are compared by their names, elsewhere; several may read one feed, or use one stage."""
    if one.what == other.what != STAGING:
        return False
    return all(_may_be_equal(*pair) for pair in zip(one.parts, other.parts, strict=False))


def _may_be_equal(one: str, other: str) -> bool:
    if ANY_TABLE in (one, other):
        return TABLE_NAME.fullmatch(other if one == ANY_TABLE else one) is not None
    return one == other


def _parts(location: str) -> tuple[str, ...]:
    parsed = parse_location(location)
    path = posixpath.normpath(parsed.path) if parsed.scheme == FOLDER else parsed.path
    bucket = f"{parsed.bucket}@{parsed.host}" if parsed.host else parsed.bucket
    return (parsed.scheme, bucket, *filter(None, path.split("/")))
