"""The YAML of a replicator, typed. Every field carries its documentation; loader, JSON Schema, table of the docs and
job files are made from these classes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.serde import to_plain


def doc(text: str, default: Any = ..., **more: Any) -> Any:
    """A field with documentation. ``default`` may be a factory (list, dict, tuple or a class).

    What the loader and the JSON Schema further know of a field: ``form`` (a name of ``loader.forms``), ``minimum`` and
    ``maximum`` of a number, ``filled`` (a list that is written must not be empty), ``choices`` (a registry of types),
    ``inline`` (takes the keys that the class does not name)."""
    metadata = {"doc": text, **more}
    if default is ...:
        return field(metadata=metadata)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


class OnDelete(StrEnum):
    HARD = "hard"
    SOFT = "soft"
    IGNORE = "ignore"


class OnBadRecord(StrEnum):
    STOP = "stop"
    QUARANTINE = "quarantine"


class OnUnrepresentable(StrEnum):
    STOP = "stop"
    SET_NULL = "set_null"


class Reconcile(StrEnum):
    MANUAL = "manual"
    AUTO = "auto"


class Comparison(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


Scalar = str | int | float | bool


@dataclass(frozen=True)
class Condition:
    column: str = doc("Source column.")
    op: Comparison = doc("How the column is compared; comparisons with NULL are not true, as in SQL.")
    value: Scalar | tuple[Scalar, ...] | None = doc(
        "Value, a list for `in` and `not in`, absent for `is null` and `is not null`.", None
    )


@dataclass(frozen=True)
class Columns:
    include: tuple[str, ...] = doc(
        "Columns to copy; all others are left out. Not together with `exclude`.", tuple, filled=True
    )
    exclude: tuple[str, ...] = doc("Columns to leave out. Their values never reach staging or target.", tuple)
    cast: dict[str, str] = doc(
        "Columns that the target holds as text, exactly as the source spells their values: `{valid_to: text}`.",
        dict,
        form="cast",
    )


@dataclass(frozen=True)
class Quarantine:
    max_rows: int = doc("How many bad records a window may hold.", 100, minimum=0, maximum=10_000)
    max_share: float = doc(
        "Share of a window's records (0 to 1) that may be bad, where that is more than `max_rows`.",
        0.001,
        minimum=0,
        maximum=1,
    )


@dataclass(frozen=True)
class TableRule:
    source: str = doc("Source table, or a pattern with `*` and `?` (`public.*`). A plain name wins over a pattern.")
    target: str = doc("Target table name; by default made from the source name. Not for patterns.", "", form="table")
    columns: Columns = doc("Columns to take.", Columns)
    where: tuple[Condition, ...] = doc(
        "Rows to take: all conditions must hold. A row that stops matching is deleted. Needs full before images.",
        tuple,
        form="filter",
    )
    key: tuple[str, ...] = doc("Columns that identify a row, instead of the source's own key.", tuple, filled=True)
    on_delete: OnDelete = doc(
        "`hard` deletes the row, `soft` sets `_cdc_deleted`, `ignore` keeps the row as it was.", OnDelete.HARD
    )
    cluster_by: tuple[str, ...] = doc("Columns the target is laid out by; the key by default.", tuple)
    on_bad_record: OnBadRecord = doc(
        "A record that cannot be read or held: `stop` blocks its table, `quarantine` puts it aside and goes on.",
        OnBadRecord.STOP,
    )
    quarantine: Quarantine = doc("How much may be put aside; above it the table is blocked.", Quarantine)
    on_unrepresentable: OnUnrepresentable = doc(
        "A value outside the key that the column's type has not (an infinite time, a year before 1 or after 9999, a "
        "zero date, NaN as a decimal): `stop` makes its record a bad one, `set_null` makes it NULL and puts its text "
        "into a column beside it, `_cdc_text_<column>`.",
        OnUnrepresentable.STOP,
    )


@dataclass(frozen=True)
class Source:
    type: str = doc("Kind of source.", choices="sources")
    connection: str = doc("Airflow connection id; every type but `files` in a folder needs one.", "", form="connection")
    reconcile: Reconcile = doc(
        "When the source no longer serves our position: `manual` blocks with the remedy, `auto` copies again.",
        Reconcile.MANUAL,
    )
    options: dict[str, Any] = doc("Keys of the source type, written beside `type`.", dict, inline=True)


@dataclass(frozen=True)
class Target:
    type: str = doc("Kind of target.", choices="targets")
    location: str = doc("Folder or URL under which the tables live.", "", form="location")
    connection: str = doc("Airflow connection id, for an object store or a database.", "", form="connection")
    catalog: str = doc("Catalog and schema for named tables (`catalog.schema`), instead of paths alone.", "")
    options: dict[str, Any] = doc("Keys of the target type, written beside `type`.", dict, inline=True)


@dataclass(frozen=True)
class Staging:
    location: str = doc("Folder or URL of the change log, reachable from every worker and executor.", form="location")
    connection: str = doc("Airflow connection id, for an object store.", "", form="connection")
    retain: timedelta = doc("How long windows are kept after every table has applied them.", timedelta(days=7))


@dataclass(frozen=True)
class Spark:
    connection: str = doc("Airflow connection id of type `spark`.", "spark_default", form="connection")
    conf: dict[str, str] = doc("Spark settings of the jobs.", dict, form="spark")


@dataclass(frozen=True)
class Resync:
    max_delete: float = doc(
        "Largest share of a table's rows (0 to 1) that a resync may delete without an operator's yes.",
        0.2,
        minimum=0,
        maximum=1,
    )


@dataclass(frozen=True)
class Dag:
    owner: str = doc("Owner shown in Airflow.", "airflow")
    tags: tuple[str, ...] = doc("Tags shown in Airflow.", tuple, form="tag")
    retries: int = doc("How often a failed task is tried again, where trying again can help.", 2, minimum=0, maximum=20)
    retry_delay: timedelta = doc("Pause before the first retry; it doubles each time.", timedelta(seconds=30))
    pool: str = doc("Airflow pool of the Spark tasks.", "default_pool")


@dataclass(frozen=True)
class Definition:
    name: str = doc(
        "Name of the replicator and of its DAG: lower-case letters, digits, `_`; starts with a letter.", form="name"
    )
    source: Source = doc("Where the changes come from.")
    target: Target = doc("Where the copies live.")
    tables: tuple[TableRule, ...] = doc("Which tables are copied, and how.", filled=True)
    staging: Staging = doc("Where the change log lives.")
    schedule: str | None = doc("Cron expression (UTC); without it no time begins a run.", None, form="cron")
    triggered_by: tuple[str, ...] = doc(
        "Airflow assets, by name: an update of any of them begins a run, too.", tuple, form="asset"
    )
    spark: Spark = doc("How the jobs run.", Spark)
    freshness: timedelta = doc("How old the copy may be before the replicator counts as late.", timedelta(hours=1))
    resync: Resync = doc("Limits of a resync.", Resync)
    dag: Dag = doc("How the DAG looks in Airflow.", Dag)
    version: int = doc("Version of this YAML format.", 1, minimum=1, maximum=1, form="version")


def written(length: timedelta) -> str:
    """A duration as the YAML writes it: ``7d``, ``90s``."""
    seconds = int(length.total_seconds())
    unit, size = next((u, s) for u, s in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)) if seconds % s == 0)
    return f"{seconds // size}{unit}"


def rule_fingerprint(definition: Definition, rule: TableRule) -> str:
    """SHA-256 over what decides the content of a target table. A change of it needs a resync."""
    columns = to_plain(rule.columns)
    content = {
        "source": [definition.source.type, definition.source.connection],
        "columns": columns if rule.columns.cast else {name: columns[name] for name in columns if name != "cast"},
        "where": to_plain(rule.where),
        "key": list(rule.key),
        "on_delete": rule.on_delete.value,
    }
    if rule.on_unrepresentable is not OnUnrepresentable.STOP:
        content["on_unrepresentable"] = rule.on_unrepresentable.value
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
