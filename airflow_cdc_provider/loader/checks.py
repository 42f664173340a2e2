"""What the fields of a definition must be to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Comparison,
    Condition,
    OnBadRecord,
    OnUnrepresentable,
    Quarantine,
    Source,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX, is_pattern, selects
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.report import Report, YamlLocation, shown
from airflow_cdc_provider.loader.types import (
    KEEPS_TEXTS,
    NEEDS,
    known_kinds,
    location_keys,
    options_class,
    table_naming,
)

PLACES = ("location", "catalog", "connection")


def check(builder: Builder) -> None:
    """Check everything that could be built, also where the definition as a whole could not."""
    rules = {path: value for path, value in builder.built.items() if isinstance(value, TableRule)}
    for path, value in builder.built.items():
        at = _finder(builder, path)
        match value:
            case Columns():
                _check_columns(value, at, builder.report)
            case Condition():
                _check_condition(value, at, builder.report)
            case Source():
                _check_source(value, at, builder.report)
            case Target():
                _check_target(value, at, builder.report)
            case TableRule():
                _check_rule(value, at, builder.report)
            case _:
                pass
    _check_twice(rules, builder)
    _check_texts(rules, builder)
    _check_bucket(builder)
    _check_retain(builder)


def _finder(builder: Builder, base: Path) -> Callable[..., YamlLocation]:
    """Where the value of a path below ``base`` stands; where it was left out, the mapping that should hold it."""

    def find(*below: str | int) -> YamlLocation:
        path = (*base, *below)
        missing: list[str | int] = []
        while path not in builder.places:
            missing.insert(0, path[-1])
            path = path[:-1]
        return builder.places[path].below(*missing)

    return find


def _check_columns(columns: Columns, at: Callable[..., YamlLocation], report: Report) -> None:
    if columns.include and columns.exclude:
        report.problem(
            "DEF022", "`include` and `exclude` together", at("exclude"), allowed="one of them", do="remove one of them"
        )


def _check_condition(condition: Condition, at: Callable[..., YamlLocation], report: Report) -> None:
    op, value = condition.op, condition.value
    if op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        wanted, right = "no value", value is None
    elif op in (Comparison.IN, Comparison.NOT_IN):
        wanted, right = "a list with at least one entry", isinstance(value, tuple) and bool(value)
    else:
        wanted, right = "one value", value is not None and not isinstance(value, tuple)
    if not right:
        kind = "no value" if value is None else "a list" if isinstance(value, tuple) else "one value"
        report.problem("DEF027", f"`{op}` takes {wanted}", at("value"), found=kind, allowed=wanted)


def _check_source(source: Source, at: Callable[..., YamlLocation], report: Report) -> None:
    options = options_class("sources", source.type)
    if not source.connection and getattr(options, NEEDS, True):
        report.problem(
            "DEF011",
            "required key `connection` of `source` is missing",
            at("connection"),
            do="name an Airflow connection",
        )
    misfits = getattr(options, "misfits", None)
    for code, key, what, found, allowed in misfits(source) if misfits else ():
        report.problem(code, what, at(key), found=found, allowed=allowed)


def _check_target(target: Target, at: Callable[..., YamlLocation], report: Report) -> None:
    """Each type says by which of the common keys it is told its place: one of them is needed, others mislead."""
    places = location_keys(target.type)
    given = [name for name in PLACES if getattr(target, name)]
    allowed = ", ".join(f"`{name}`" for name in places.any_of)
    if not set(places.any_of) & set(given):
        report.problem("DEF011", "the target has no place", at(), allowed=allowed, do="say where the tables live")
    for name in given:
        if name not in places.taken:
            report.problem(
                "DEF010",
                f"a {target.type} target takes no `{name}`",
                at(name),
                found=f"key {shown(name)}",
                allowed=allowed,
            )
    misfits = getattr(options_class("targets", target.type), "misfits", None)
    for key, what, allowed in misfits(target) if misfits else ():
        report.problem("DEF051", what, at(key), found=shown(str(getattr(target, key))), allowed=allowed)


def _check_texts(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    """Not every source tells what the values of a column are as text."""
    source = builder.built.get(("source",))
    if not isinstance(source, Source) or getattr(options_class("sources", source.type), KEEPS_TEXTS, False):
        return
    for path, rule in rules.items():
        asked: list[tuple[str, ...]] = [("columns", "cast")] if rule.columns.cast else []
        asked += [("on_unrepresentable",)] if rule.on_unrepresentable is not OnUnrepresentable.STOP else []
        for field in asked:
            builder.report.problem(
                "DEF056",
                f"a {source.type} source has no values that a target lacks, or does not tell their texts",
                _finder(builder, path)(*field),
                found=f"`{'.'.join(field)}`",
                allowed="sources that do: " + ", ".join(_keeping_texts()),
                do="remove it; leave out columns whose values the target cannot hold",
            )


def _keeping_texts() -> list[str]:
    return [kind for kind in known_kinds("sources") if getattr(options_class("sources", kind), KEEPS_TEXTS, False)]


def _check_bucket(builder: Builder) -> None:
    """Spark is told its credentials bucket by bucket."""
    target, staging = builder.built.get(("target",)), builder.built.get(("staging",))
    if not isinstance(target, Target) or not isinstance(staging, Staging):
        return
    one, other = parse_location(target.location), parse_location(staging.location)
    if one.scheme == FOLDER or (one.scheme, one.bucket) != (other.scheme, other.bucket):
        return
    if target.connection != staging.connection:
        builder.report.problem(
            "DEF050",
            "target and staging reach one bucket by different connections",
            _finder(builder, ("staging",))("connection"),
            found=f"{shown(target.connection)} and {shown(staging.connection)}",
            allowed="one connection per bucket",
            do="name the same `connection` twice, or use two buckets",
        )


def _check_retain(builder: Builder) -> None:
    """What a source tells twice is known by the windows that are kept."""
    source, staging = builder.built.get(("source",)), builder.built.get(("staging",))
    if not isinstance(source, Source) or not isinstance(staging, Staging):
        return
    least = getattr(options_class("sources", source.type), "duplicates_within", timedelta())
    if staging.retain < least:
        hours = int(least.total_seconds() // 3600)
        builder.report.problem(
            "DEF054",
            f"a {source.type} source may tell a change again after {hours} hours, and staging keeps it for less",
            _finder(builder, ("staging",))("retain"),
            found=f"`retain` of {staging.retain.total_seconds() / 3600:g} hours",
            allowed=f"{hours}h or more",
            do="keep windows for longer: a change that is taken for a new one would take its row back",
        )


def _check_rule(rule: TableRule, at: Callable[..., YamlLocation], report: Report) -> None:
    if is_pattern(rule.source) and rule.target:
        report.problem(
            "DEF049",
            "one target name for a pattern",
            at("target"),
            found=shown(rule.source),
            do="remove `target`, or name the tables one by one",
        )
    if rule.on_bad_record is OnBadRecord.STOP and rule.quarantine != Quarantine():
        report.problem(
            "DEF052",
            "limits of a quarantine that is not there",
            at("quarantine"),
            found=f"`on_bad_record: {rule.on_bad_record}`",
            do="add `on_bad_record: quarantine`, or remove the limits",
        )
    for column in rule.columns.cast:
        if not selects(rule, column):
            report.problem(
                "DEF021",
                f"`cast` column {shown(column)} is left out by `columns`",
                at("columns", "cast", column),
                found=shown(column),
                do="take the column, or remove it from `cast`",
            )
    for name, index, column in _needed(rule):
        if not selects(rule, column):
            report.problem(
                "DEF021",
                f"`{name}` column {shown(column)} is left out by `columns`",
                at(name, index, *(["column"] if name == "where" else [])),
                found=shown(column),
                do="take the column, or name another one",
            )
    taken = [(("columns", "include", index), column) for index, column in enumerate(rule.columns.include)]
    for path, column in (*(((name, index), column) for name, index, column in _needed(rule)), *taken):
        if column.lower().startswith(RESERVED_PREFIX):
            report.problem(
                "DEF026",
                f"reserved column name {shown(column)}",
                at(*path),
                found=shown(column),
                allowed=f"names that do not start with {RESERVED_PREFIX}",
            )


def _needed(rule: TableRule) -> Iterable[tuple[str, int, str]]:
    """Field, index and name of every column that the rule cannot do without."""
    for name in ("key", "cluster_by"):
        for index, column in enumerate(getattr(rule, name)):
            yield name, index, column
    for index, condition in enumerate(rule.where):
        yield "where", index, condition.column


def _check_twice(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    """No source table twice, and no target table, as far as names tell without asking the source."""
    target = builder.built.get(("target",))
    name_of = table_naming(target.type) if target else None
    sources: dict[str, Path] = {}
    targets: dict[str, Path] = {}
    for path, rule in rules.items():
        at = _finder(builder, path)
        if (first := sources.setdefault(rule.source, path)) != path:
            builder.report.problem(
                "DEF045",
                f"table {shown(rule.source)} is listed twice",
                at("source"),
                found=f"also at line {_finder(builder, first)('source').line}",
                do="keep one of them",
            )
            continue
        if is_pattern(rule.source) or not (rule.target or name_of):
            continue
        name = rule.target or (name_of(rule.source) if name_of else "")
        if (first := targets.setdefault(name.lower(), path)) != path:
            builder.report.problem(
                "DEF015",
                f"target table {shown(name)} would be written from two source tables",
                at("target"),
                found=f"{shown(rule.source)} and {shown(rules[first].source)}",
                allowed="one source table per target table",
                do="give `target` names that differ by more than case",
            )
