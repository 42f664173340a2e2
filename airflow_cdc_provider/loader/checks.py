"""Checks of relations between the fields of a definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Comparison,
    Condition,
    Ignorable,
    OnBadRecord,
    OnDelete,
    OnUnrepresentable,
    Quarantine,
    Source,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.spec.routing import has_placeholders
from airflow_cdc_provider.core.spec.selected_columns import selects
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX, is_pattern
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.history_checks import check_history, check_logs
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.report import Report, YamlLocation, shown
from airflow_cdc_provider.loader.shard_checks import check_shard, check_shards
from airflow_cdc_provider.loader.snapshot_checks import check_snapshots
from airflow_cdc_provider.loader.target_checks import check_targets
from airflow_cdc_provider.loader.types import (
    KEEPS_TEXTS,
    NEEDS,
    known_kinds,
    location_keys,
    options_class,
)

LOCATION_KEYS = ("location", "catalog", "connection")


def check(builder: Builder) -> None:
    """Check all parts that could be built, even if the definition as a whole could not."""
    rules = {path: value for path, value in builder.built.items() if isinstance(value, TableRule)}
    for path, value in builder.built.items():
        at = finder(builder, path)
        match value:
            case Columns():
                _check_columns(value, at, builder.report)
            case Condition():
                _check_condition(value, at, builder.report)
            case Source():
                _check_source(value, at, builder.report)
            case Target():
                _check_target(value, at, builder.report)
            case Staging():
                _check_folder(value, at, builder.report)
            case TableRule():
                _check_rule(value, at, builder.report)
            case _:
                pass
    _check_twice(rules, builder)
    _check_texts(rules, builder)
    _check_hash_key(rules, builder)
    check_logs(rules, builder)
    check_targets(rules, builder)
    _check_retain(builder)
    check_snapshots(builder)
    check_shards(rules, builder)


def _check_columns(columns: Columns, at: Callable[..., YamlLocation], report: Report) -> None:
    if columns.include and columns.exclude:
        report.problem(
            "DEF022", "`include` and `exclude` together", at("exclude"), allowed="one of them", do="remove one of them"
        )
    hiding = [(field, column) for field in ("hash", "mask", "truncate") for column in getattr(columns, field)]
    for column, count in Counter(column for _, column in hiding).items():
        if count > 1:
            fields = [field for field, name in hiding if name == column]
            report.problem(
                "DEF063",
                f"column {shown(column)} is in {' and '.join(f'`{field}`' for field in fields)}",
                at(fields[-1], column),
                found=shown(column),
                allowed="one of `hash`, `mask`, `truncate`",
                do="remove the column from the others",
            )
    for index, added in enumerate(columns.add):
        if (added.value is None) == (added.metadata is None):
            report.problem(
                "DEF064",
                f"column {shown(added.name)} requires `value` or `metadata`",
                at("add", index),
                found="neither" if added.value is None else "both",
                allowed="one of them",
            )


def _check_condition(condition: Condition, at: Callable[..., YamlLocation], report: Report) -> None:
    op, value = condition.op, condition.value
    if op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        allowed, valid = "no value", value is None
    elif op in (Comparison.IN, Comparison.NOT_IN):
        allowed, valid = "a list with at least one entry", isinstance(value, tuple) and bool(value)
    else:
        allowed, valid = "one value", value is not None and not isinstance(value, tuple)
    if not valid:
        kind = "no value" if value is None else "a list" if isinstance(value, tuple) else "one value"
        report.problem("DEF027", f"`{op}` requires {allowed}", at("value"), found=kind, allowed=allowed)


def _check_source(source: Source, at: Callable[..., YamlLocation], report: Report) -> None:
    options = options_class("sources", source.type)
    if not source.connection and getattr(options, NEEDS, True):
        report.problem(
            "DEF011",
            "required key `connection` of `source` is missing",
            at("connection"),
            do="set the id of an Airflow connection",
        )
    option_conflicts = getattr(options, "option_conflicts", None)
    for code, key, what, found, allowed in option_conflicts(source) if option_conflicts else ():
        report.problem(code, what, at(key), found=found, allowed=allowed)


def _check_target(target: Target, at: Callable[..., YamlLocation], report: Report) -> None:
    """Each target type defines which of the common keys set its location. One of them is required; other keys would be
    ignored, so they are rejected."""
    keys = location_keys(target.type)
    given = [name for name in LOCATION_KEYS if getattr(target, name)]
    allowed = ", ".join(f"`{name}`" for name in keys.any_of)
    if not set(keys.any_of) & set(given):
        report.problem("DEF011", "the target has no location", at(), allowed=allowed, do="set one of the allowed keys")
    for name in given:
        if name not in keys.allowed:
            report.problem(
                "DEF010",
                f"a {target.type} target has no key `{name}`",
                at(name),
                found=f"key {shown(name)}",
                allowed=allowed,
            )
    option_conflicts = getattr(options_class("targets", target.type), "option_conflicts", None)
    for key, what, allowed in option_conflicts(target) if option_conflicts else ():
        found = str(getattr(target, key, target.options.get(key, "")))
        report.problem("DEF051", what, at(key), found=shown(found), allowed=allowed)


def _check_folder(folder: Staging, at: Callable[..., YamlLocation], report: Report) -> None:
    """A bucket without its scheme would be a folder of each worker."""
    if folder.connection and parse_location(folder.location).scheme == FOLDER:
        report.problem(
            "DEF105",
            "`connection` has no effect on a folder",
            at("connection"),
            found=f"`location` {shown(folder.location)}",
            allowed="a `connection` for a bucket: s3://, gs:// or abfss://",
            do="write the location as a URL, or remove `connection`",
        )


def _check_texts(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    """Not every source can deliver the values of a column as text."""
    source = builder.built.get(("source",))
    if not isinstance(source, Source) or getattr(options_class("sources", source.type), KEEPS_TEXTS, False):
        return
    for path, rule in rules.items():
        fields: list[tuple[str, ...]] = [("columns", "cast")] if rule.columns.as_text else []
        fields += [("on_unrepresentable",)] if rule.on_unrepresentable is not OnUnrepresentable.STOP else []
        for field in fields:
            builder.report.problem(
                "DEF056",
                f"a {source.type} source has no unrepresentable values, or cannot deliver them as text",
                finder(builder, path)(*field),
                found=f"`{'.'.join(field)}`",
                allowed="source types that can: " + ", ".join(_types_with_texts()),
                do="remove it; exclude columns whose values the target cannot hold",
            )


def _check_hash_key(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    for path, rule in rules.items():
        if rule.columns.hash and ("hash_connection",) not in builder.locations:
            builder.report.problem(
                "DEF065",
                "`hash` requires a key",
                finder(builder, path)("columns", "hash"),
                found="no `hash_connection`",
                do="add `hash_connection`, the id of an Airflow connection whose password is the key",
            )


def _types_with_texts() -> list[str]:
    return [kind for kind in known_kinds("sources") if getattr(options_class("sources", kind), KEEPS_TEXTS, False)]


def _check_retain(builder: Builder) -> None:
    """A change that the source delivers again is recognised by the windows in the change log."""
    source, staging = builder.built.get(("source",)), builder.built.get(("staging",))
    if not isinstance(source, Source) or not isinstance(staging, Staging):
        return
    least = getattr(options_class("sources", source.type), "duplicates_within", timedelta())
    if staging.retain < least:
        hours = int(least.total_seconds() // 3600)
        builder.report.problem(
            "DEF054",
            f"a {source.type} source may deliver a change again after {hours} hours, which is longer than `retain`",
            finder(builder, ("staging",))("retain"),
            found=f"`retain` of {staging.retain.total_seconds() / 3600:g} hours",
            allowed=f"{hours}h or more",
            do="raise `retain`: a duplicate that is not recognised would set its row back",
        )


def _check_rule(rule: TableRule, at: Callable[..., YamlLocation], report: Report) -> None:
    if is_pattern(rule.source) and rule.target and not has_placeholders(rule.target) and not rule.shard_column:
        report.problem(
            "DEF049",
            "a pattern has a single target name",
            at("target"),
            found=shown(rule.source),
            do="add placeholders, as in `{schema}_{table}`, remove `target`, or set `shard_column`",
        )
    if rule.columns.plain and not rule.sensitive:
        report.problem(
            "DEF066",
            "`plain` columns of a table whose new columns are not withheld",
            at("columns", "plain"),
            do="add `sensitive: true` to the table, or remove `plain`",
        )
    if rule.new_tables and not is_pattern(rule.source):
        report.problem(
            "DEF071",
            "`new_tables` of a table by name",
            at("new_tables"),
            found=shown(rule.source),
            allowed="a pattern with `*` or `?`",
            do="remove `new_tables`",
        )
    if rule.on_delete is OnDelete.SOFT and Ignorable.DELETE in rule.ignore:
        report.problem(
            "DEF070",
            "deletes are ignored and marked",
            at("ignore", rule.ignore.index(Ignorable.DELETE)),
            found="`on_delete: soft`",
            allowed="one of `on_delete: soft` and `ignore: [delete]`",
            do="remove one of them",
        )
    check_history(rule, at, report)
    check_shard(rule, at, report)
    if rule.on_bad_record is OnBadRecord.STOP and rule.quarantine != Quarantine():
        report.problem(
            "DEF052",
            "quarantine limits without a quarantine",
            at("quarantine"),
            found=f"`on_bad_record: {rule.on_bad_record}`",
            do="add `on_bad_record: quarantine`, or remove the limits",
        )
    for field in ("cast", "hash", "mask", "truncate", "rename"):
        names = getattr(rule.columns, field)
        for index, column in enumerate(names):
            if not selects(rule, column):
                report.problem(
                    "DEF021",
                    f"`{field}` column {shown(column)} is omitted by `columns`",
                    at("columns", field, column if isinstance(names, dict) else index),
                    found=shown(column),
                    do=f"include the column, or remove it from `{field}`",
                )
    for name, index, column in _required_columns(rule):
        if not selects(rule, column):
            report.problem(
                "DEF021",
                f"`{name}` column {shown(column)} is omitted by `columns`",
                at(name, index, *(["column"] if name == "where" else [])),
                found=shown(column),
                do="include the column, or use another one",
            )
    included = [(("columns", "include", index), column) for index, column in enumerate(rule.columns.include)]
    required = [((name, index), column) for name, index, column in _required_columns(rule)]
    for path, column in (*required, *included):
        if column.lower().startswith(RESERVED_PREFIX):
            report.problem(
                "DEF026",
                f"reserved column name {shown(column)}",
                at(*path),
                found=shown(column),
                allowed=f"names that do not start with {RESERVED_PREFIX}",
            )


def _required_columns(rule: TableRule) -> Iterable[tuple[str, int, str]]:
    """Field, index and name of every column that the rule requires."""
    for name in ("key", "cluster_by"):
        for index, column in enumerate(getattr(rule, name)):
            yield name, index, column
    for index, condition in enumerate(rule.where):
        yield "where", index, condition.column


def _check_twice(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    """No source table is listed twice."""
    sources: dict[str, Path] = {}
    for path, rule in rules.items():
        if (first := sources.setdefault(rule.source, path)) != path:
            builder.report.problem(
                "DEF045",
                f"table {shown(rule.source)} is listed twice",
                finder(builder, path)("source"),
                found=f"also at line {finder(builder, first)('source').line}",
                do="keep one of them",
            )
