"""Folders and prefixes that a replicator reads or writes. What one of them removes must not be another one: the command
`delete` removes staging, a dropped table its folder, and a feed reads every file that it finds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

from airflow_cdc_provider.core.spec.definition import Definition, TableRule, Target
from airflow_cdc_provider.core.spec.selection import is_pattern, matches
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.core.table.source_names import parts_of, table_name
from airflow_cdc_provider.loader.types import table_naming, table_parent

STAGING, TABLES = "staging", "the tables of a target"
ANY_NAME = "*"
TABLE_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_]*")
PLACEHOLDER, WILDCARDS, UNKNOWN = re.compile(r"\{[^}]*\}"), re.compile("[*?]+"), "0unknown0"
"""``UNKNOWN``: characters that every naming of tables keeps."""


@dataclass(frozen=True)
class UsedFolder:
    """``key``: path of its key in the YAML. ``parts``: from the bucket or the root on. ``names``: of the tables in it,
    which alone are used; they may contain ``ANY_NAME``."""

    what: str
    key: tuple[str | int, ...]
    parts: tuple[str, ...]
    names: frozenset[str] | None = None

    @property
    def shown(self) -> str:
        scheme, bucket, *path = self.parts
        where = f"/{'/'.join(path)}" if scheme == FOLDER else f"{scheme}://{'/'.join((bucket, *path))}"
        return f"{self.what} in {where}"

    def named(self, part: str) -> str:
        """The name that a table with this folder has here; empty if there is none."""
        names = self.names or frozenset()
        if part in names:
            return part
        possible = (name for name in sorted(names) if ANY_NAME in name and matches(name, part))
        return next(possible, "") if TABLE_NAME.fullmatch(part) else ""


@dataclass(frozen=True)
class Overlap:
    """``certain``: whatever tables the source has."""

    one: UsedFolder
    other: UsedFolder
    certain: bool

    @property
    def of_staging(self) -> bool:
        return STAGING in (self.one.what, self.other.what)


def used_folders(definition: Definition) -> Iterator[UsedFolder]:
    yield UsedFolder(STAGING, ("staging", "location"), (*_parts(definition.staging.location), definition.name))
    if feed := str(definition.source.options.get("location") or ""):
        yield UsedFolder("the files of the source", ("source", "location"), _parts(feed))
    for number, target in enumerate(definition.all_targets):
        key = ("targets", number) if definition.targets else ("target",)
        if stage := str(target.options.get("stage") or ""):
            yield UsedFolder("the stage of a target", (*key, "stage"), _parts(stage))
        if target.location:
            yield _of_tables(definition, target, (*key, "location"))


def overlaps(folders: Sequence[UsedFolder]) -> Iterator[Overlap]:
    """Pairs of which one is the other, or is below it."""
    for one, other in combinations(folders, 2):
        yield from _overlap(one, other)


def overlaps_between(folders: Sequence[UsedFolder], others: Sequence[UsedFolder]) -> Iterator[Overlap]:
    for one, other in product(folders, others):
        yield from _overlap(one, other)


def first_overlap(definition: Definition, others: Iterable[Definition]) -> Overlap | None:
    """The first one for which the loader refuses ``definition`` beside ``others``."""
    own = list(used_folders(definition))
    between = (overlap for other in others for overlap in overlaps_between(own, list(used_folders(other))))
    return next(chain(overlaps(own), (overlap for overlap in between if overlap.certain)), None)


def _of_tables(definition: Definition, target: Target, key: tuple[str | int, ...]) -> UsedFolder:
    """One for all: a replicator may have thousands of tables."""
    parts = _parts(target.location)
    if parent := table_parent(target):
        return UsedFolder(TABLES, key, (*parts, *parent))
    name_of = table_naming(target.type)
    rules = (rule for rule in definition.tables if rule.has_copy_in(target.name))
    return UsedFolder(TABLES, key, parts, frozenset(_table_name(rule, name_of) for rule in rules))


def _table_name(rule: TableRule, name_of: Callable[[str], str]) -> str:
    """With ``ANY_NAME`` for what only the source shows."""
    if rule.target:
        return PLACEHOLDER.sub(ANY_NAME, rule.target)
    if not is_pattern(rule.source):
        return name_of(rule.source)
    *schema, table = parts_of(rule.source)
    if not schema or any(map(is_pattern, schema)) or '"' in rule.source:
        return ANY_NAME
    return name_of(table_name(*schema, WILDCARDS.sub(UNKNOWN, table))).replace(UNKNOWN, ANY_NAME)


def _overlap(one: UsedFolder, other: UsedFolder) -> Iterator[Overlap]:
    """Tables are compared by their names, elsewhere; several may read one feed, or use one stage."""
    if one.what == other.what != STAGING or not _is_prefix(one.parts, other.parts):
        return
    for tables, inside in ((one, other), (other, one)):
        if tables.names is not None and len(inside.parts) > len(tables.parts):
            part = inside.parts[len(tables.parts)]
            if name := tables.named(part):
                found = replace(tables, parts=(*tables.parts, name), names=None)
                yield Overlap(found if one is tables else one, found if other is tables else other, name == part)
            return
    yield Overlap(one, other, certain=True)


def _is_prefix(one: Sequence[str], other: Sequence[str]) -> bool:
    """One of them, whichever is shorter."""
    return all(left == right for left, right in zip(one, other, strict=False))


def _parts(location: str) -> tuple[str, ...]:
    parsed = parse_location(location)
    path = posixpath.normpath(parsed.path) if parsed.scheme == FOLDER else parsed.path
    bucket = f"{parsed.bucket}@{parsed.host}" if parsed.host else parsed.bucket
    return (parsed.scheme, bucket, *filter(None, path.split("/")))
