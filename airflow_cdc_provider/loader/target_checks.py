"""Checks of the targets of a definition, and of the tables in each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from airflow_cdc_provider.core.spec.definition import Staging, TableRule, Target
from airflow_cdc_provider.core.spec.routing import target_name
from airflow_cdc_provider.core.spec.selection import is_pattern
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.report import shown
from airflow_cdc_provider.loader.shared_locations import shared_location_keys
from airflow_cdc_provider.loader.types import table_naming

Targets = Mapping[Path, Target]


def check_targets(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    targets = {path: value for path, value in builder.built.items() if isinstance(value, Target)}
    if not _has_one_key(builder):
        return
    _check_names(targets, builder)
    _check_locations(targets, builder)
    _check_chosen(rules, targets, builder)
    _check_shared_tables(rules, targets, builder)
    _check_buckets(targets, builder)


def _has_one_key(builder: Builder) -> bool:
    """Whether there is not both a target and a list of targets."""
    given = [key for key in ("target", "targets") if (key,) in builder.locations]
    at = finder(builder, ())
    if len(given) == 2:
        builder.report.problem(
            "DEF100",
            "`target` and `targets` together",
            at("target"),
            allowed="one of them",
            do="move the target into the list `targets`, without a name: its copies stay as they are",
        )
        return False
    misspelled = any(one.code == "DEF010" and "'target" in one.do for one in builder.report.problems)
    if not given and not misspelled and builder.locations.keys() - {()}:  # the file is a mapping
        builder.report.problem(
            "DEF011",
            "required key `target` is missing",
            at("target"),
            allowed="`target`, or the list `targets`",
            do="add the system that contains the copies",
        )
    return True


def _check_names(targets: Targets, builder: Builder) -> None:
    first: dict[str, Path] = {}
    for path, target in targets.items():
        if (other := first.setdefault(target.name, path)) != path:
            builder.report.problem(
                "DEF101",
                f"two targets have the name {shown(target.name)}",
                finder(builder, path)("name"),
                found=f"also at line {finder(builder, other)().line}",
                allowed="a different `name` for each target; one of them may have none",
                do="add a `name`; copies in a target without one keep the names of their tables",
            )


def _check_locations(targets: Targets, builder: Builder) -> None:
    for (_, first), (path, second) in combinations(targets.items(), 2):
        if keys := shared_location_keys(first, second):
            builder.report.problem(
                "DEF102",
                f"targets {shown(first.name)} and {shown(second.name)} have the same place",
                finder(builder, path)(keys[0]),
                found=", ".join(f"the same `{key}`" for key in keys),
                allowed="targets with different tables",
                do="set another location, catalog or schema in one of them; a key that only one of them has, as"
                " `project`, may have the same value by the connection: set it in both",
            )


def _check_chosen(rules: Mapping[Path, TableRule], targets: Targets, builder: Builder) -> None:
    known = [target.name for target in targets.values()]
    for path, rule in rules.items():
        for index, name in enumerate(rule.targets):
            if name not in known:
                builder.report.problem(
                    "DEF103",
                    f"there is no target {shown(name)}",
                    finder(builder, path)("targets", index),
                    found=shown(name),
                    allowed=", ".join(known),
                    do="correct the name, or add the target to `targets`",
                )


def _check_shared_tables(rules: Mapping[Path, TableRule], targets: Targets, builder: Builder) -> None:
    """No table of a target is written twice, judged by names without the source."""
    reported: set[Path] = set()
    for target in targets.values() or (None,):
        first: dict[str, Path] = {}
        for path, name in _table_names(rules, target):
            other = first.setdefault(name.lower(), path)
            are_shards = rules[path].shard_column and rules[other].shard_column
            if other != path and not are_shards and path not in reported:
                reported.add(path)
                builder.report.problem(
                    "DEF015",
                    f"target table {shown(name)} would be written from two source tables",
                    finder(builder, path)("target"),
                    found=f"{shown(rules[path].source)} and {shown(rules[other].source)}",
                    allowed="one source table per target table, or a `shard_column` for each of them",
                    do="set `target` names that differ by more than case, or set `shard_column`",
                )


def _table_names(rules: Mapping[Path, TableRule], target: Target | None) -> Iterator[tuple[Path, str]]:
    """Of the rules with a copy in a target; without a target, of those with a name in the YAML."""
    name_of = table_naming(target.type) if target else None
    sources: set[str] = set()
    for path, rule in rules.items():
        chosen = target is None or rule.has_copy_in(target.name)
        listed_twice, sources = rule.source in sources, {*sources, rule.source}
        if not chosen or listed_twice or is_pattern(rule.source) or not (rule.target or name_of):
            continue
        name, problems = target_name(rule, rule.source, name_of(rule.source) if name_of else "")
        if not problems:
            yield path, name


def _check_buckets(targets: Targets, builder: Builder) -> None:
    """Spark has one set of credentials per bucket of S3, per account of Azure, and for all of Cloud Storage."""
    staging = builder.built.get(("staging",))
    ends: list[tuple[Path, Target | Staging]] = [*targets.items()]
    ends += [(("staging",), staging)] if isinstance(staging, Staging) else []
    for (_, one), (path, other) in combinations(ends, 2):
        of_one, of_other = parse_location(one.location), parse_location(other.location)
        if of_one.scheme == FOLDER or of_one.credentials_scope != of_other.credentials_scope:
            continue
        if one.connection != other.connection:
            names = "target and staging" if isinstance(other, Staging) else "two targets"
            builder.report.problem(
                "DEF050",
                f"{names} use different connections for the same object store",
                finder(builder, path)("connection"),
                found=f"{shown(one.connection)} and {shown(other.connection)}",
                allowed="one connection per bucket of S3, per account of Azure, and for all of Cloud Storage",
                do="use the same `connection` for both",
            )
