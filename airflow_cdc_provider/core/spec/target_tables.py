"""Source tables with the same target table: an error, or shards. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.nearest import abbreviated
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule
from airflow_cdc_provider.core.spec.shards import schema_difference
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.schema import TableSchema


class Copied(Protocol):
    """A copy. ``schema``: of its rows, with the key."""

    @property
    def table(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def rule(self) -> TableRule: ...

    @property
    def schema(self) -> TableSchema: ...


def collisions(copies: Sequence[Copied]) -> list[Problem]:
    """Of copies with the same target table, by definitions that do not go together."""
    return [problem for shared in _shared(copies) for problem in _collision(shared)]


def schema_collisions(copies: Sequence[Copied]) -> list[Problem]:
    """Of shards whose rows one table cannot hold. A column that only some of them have is NULL in the rows of the
    others. For a check: a shard whose schema changes later continues as long as the target can hold its rows."""
    problems = []
    for first, *others in _shared(copies):
        for other in others:
            if difference := schema_difference(first.schema, other.schema):
                problems.append(_differs(first, other, difference))
    return problems


def _shared(copies: Sequence[Copied]) -> Iterator[list[Copied]]:
    """In the same target, ignoring case as most targets do."""
    by_target: defaultdict[tuple[str, str], list[Copied]] = defaultdict(list)
    for copy in copies:
        by_target[target_of_copy(copy.table), copy.target.lower()].append(copy)
    return (shared for shared in by_target.values() if len(shared) > 1)


def _collision(shared: Sequence[Copied]) -> Iterator[Problem]:
    if not all(copy.rule.shard_column for copy in shared):
        yield from (_without_shards(copy, shared) for copy in shared)
        return
    first = shared[0]
    for key, ways in (
        ("shard_column", {copy.rule.shard_column for copy in shared}),
        ("target", {copy.target for copy in shared}),
        ("on_delete", {"soft" if copy.rule.on_delete is OnDelete.SOFT else "not soft" for copy in shared}),
    ):
        if len(ways) > 1:
            yield from (_differs(first, copy, f"`{key}` is {' and '.join(sorted(ways))}") for copy in shared)
            return
    by_value: defaultdict[str, list[Copied]] = defaultdict(list)
    for copy in shared:
        by_value[copy.rule.shard_value].append(copy)
    for equal in by_value.values():
        yield from (_same_value(copy, equal) for copy in equal if len(equal) > 1)


def _without_shards(copy: Copied, shared: Sequence[Copied]) -> Problem:
    return Problem(
        "DEF015",
        f"target table {copy.target} would be written from more than one source table",
        where=copy.table,
        found=abbreviated(other.table for other in shared),
        allowed="one source table per target table, or a `shard_column` for each of them",
        do="set `target` names, narrow the pattern, or set `shard_column`",
        table=copy.table,
    )


def _differs(first: Copied, other: Copied, difference: str) -> Problem:
    pair = first.table if first is other else f"{first.table} and {other.table}"
    return Problem(
        "DEF086",
        f"{pair} cannot share target table {other.target}: {difference}",
        where=other.table,
        found=difference,
        allowed="the same settings and keys, and equal types of the columns that the tables have in common",
        do="make them equal (`columns.cast`, `columns.exclude`, `key`), or give a table another `target`",
        table=other.table,
    )


def _same_value(copy: Copied, equal: Sequence[Copied]) -> Problem:
    return Problem(
        "DEF087",
        f"rows of {copy.table} cannot be distinguished from others in target table {copy.target}",
        where=copy.table,
        found=f"{copy.rule.shard_column} = {copy.rule.shard_value!r} for {abbreviated(one.table for one in equal)}",
        allowed="a value of its own for each source table",
        do="set another `shard_value`, or none: the default is the name of the source table",
        table=copy.table,
    )
