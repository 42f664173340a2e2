"""The definition of a replicator: the typed form of its YAML. Loader, JSON Schema, reference documentation and step
files are derived from these classes; every field carries its documentation."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.columns import Columns as Columns
from airflow_cdc_provider.core.spec.conditions import Comparison as Comparison
from airflow_cdc_provider.core.spec.conditions import Condition as Condition
from airflow_cdc_provider.core.spec.engines import LOCAL_ROWS, LOCAL_UPLOAD_ROWS, EngineMode
from airflow_cdc_provider.core.spec.fields import Scalar as Scalar
from airflow_cdc_provider.core.spec.fields import doc as doc
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.notifications import Notification
from airflow_cdc_provider.core.spec.schema_policy import SchemaPolicy
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotDefaults, SnapshotMode
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.spec.verification import Verify
from airflow_cdc_provider.core.table.copies import DEFAULT_TARGET

STAGE_CONNECTION = "stage_connection"
"""The option of a target that names the connection of its stage, a bucket."""


class OnDelete(StrEnum):
    HARD = "hard"
    SOFT = "soft"
    IGNORE = "ignore"


class Ignorable(StrEnum):
    DELETE = "delete"
    TRUNCATE = "truncate"


class OnBadRecord(StrEnum):
    STOP = "stop"
    QUARANTINE = "quarantine"


class OnUnrepresentable(StrEnum):
    STOP = "stop"
    SET_NULL = "set_null"


class Reconcile(StrEnum):
    MANUAL = "manual"
    AUTO = "auto"


@dataclass(frozen=True)
class Quarantine:
    max_rows: int = doc("Maximum number of bad records per window.", 100, minimum=0, maximum=10_000)
    max_share: float = doc(
        "Maximum fraction of bad records per window (0 to 1); applies if it allows more than `max_rows`.",
        0.001,
        minimum=0,
        maximum=1,
    )


@dataclass(frozen=True)
class TableRule:
    source: str = doc(
        "Source table, or a pattern with `*` and `?` (`public.*`). A name takes precedence over patterns."
    )
    target: str = doc(
        "Target table name; by default derived from the source name. For patterns with placeholders: "
        "`{schema}_{table}`; `{database}` where names have three parts.",
        "",
        form="target",
    )
    targets: tuple[str, ...] = doc(
        "Names of the targets that have a copy of the table; by default all `targets`.", tuple, non_empty=True
    )
    shard_column: str = doc(
        "Column that distinguishes the rows of this source table from those of the others with the same `target`. It "
        "is the first column of the key.",
        "",
        form="column",
    )
    shard_value: str = doc(
        "Value of `shard_column`: text, or a pattern of `{table}`, `{schema}` and `{database}`; by default the name of "
        "the source table.",
        "",
        form="shard",
    )
    columns: Columns = doc("Columns to copy, and what becomes of them.", Columns)
    sensitive: bool = doc(
        "New columns are withheld until `columns` names them, in any of its lists.",
        False,
    )
    where: tuple[Condition, ...] = doc(
        "Rows to copy: all conditions must be true. A row that stops matching is deleted. Requires full before images.",
        tuple,
        form="filter",
    )
    key: tuple[str, ...] = doc(
        "Columns of the source that identify a row, instead of the source's own key.", tuple, non_empty=True
    )
    on_delete: OnDelete = doc(
        "`hard` deletes the row, `soft` sets `_cdc_deleted`, `ignore` keeps the row unchanged.", OnDelete.HARD
    )
    ignore: tuple[Ignorable, ...] = doc(
        "Operations of the source that are not applied to the copy. `on_delete: ignore` ignores both.", tuple
    )
    history: History = doc(
        "`none`: the rows as they are now. `scd2`: every version of each row, with the time in which it was valid. "
        "`log`: every change, with its operation and its commit time.",
        History.NONE,
    )
    history_target: str = doc(
        "Target table of the history, which is then beside the copy; by default it takes the copy's place. For "
        "patterns with placeholders: `{table}_history`.",
        "",
        form="target",
    )
    cluster_by: tuple[str, ...] = doc(
        "Columns, by their names in the source, by which the target is clustered; the key by default.", tuple
    )
    on_bad_record: OnBadRecord = doc(
        "A record that cannot be decoded or stored: `stop` blocks its table, `quarantine` moves it to quarantine.",
        OnBadRecord.STOP,
    )
    quarantine: Quarantine = doc("Limits of the quarantine; above them the table is blocked.", Quarantine)
    on_unrepresentable: OnUnrepresentable = doc(
        "A value outside the key that the column's type cannot represent (an infinite time, a year before 1 or after "
        "9999, a zero date, NaN as a decimal): `stop` makes its record a bad record, `set_null` writes NULL and stores "
        "the text of the value in an additional column, `_cdc_text_<column>`.",
        OnUnrepresentable.STOP,
    )
    new_tables: OnNewTable | None = doc("For patterns: as `new_tables` of the replicator.", None)
    dropped_tables: OnDroppedTable | None = doc("As `dropped_tables` of the replicator.", None)
    schema_changes: SchemaPolicy = doc(
        "What happens at a schema change of the table; keys that are absent have the values of the replicator.",
        SchemaPolicy,
    )
    snapshot: Snapshot = doc("Which rows a full copy of the table reads.", Snapshot)

    @property
    def ignores_deletes(self) -> bool:
        return self.on_delete is OnDelete.IGNORE or Ignorable.DELETE in self.ignore

    @property
    def ignores_truncates(self) -> bool:
        return self.on_delete is OnDelete.IGNORE or Ignorable.TRUNCATE in self.ignore

    def has_copy_in(self, target: str) -> bool:
        """Whether the target with this name has a copy of the table."""
        return not self.targets or target in self.targets


@dataclass(frozen=True)
class Source:
    type: str = doc("Source type.", choices="sources")
    connection: str = doc(
        "Airflow connection id; required by every type except `files` in a folder.", "", form="connection"
    )
    reconcile: Reconcile = doc(
        "If the source no longer serves the position: `manual` blocks the tables, `auto` copies them again.",
        Reconcile.MANUAL,
    )
    options: dict[str, Any] = doc("Options of the source type, at the same level as `type`.", dict, inline=True)


@dataclass(frozen=True)
class Target:
    type: str = doc("Target type.", choices="targets")
    location: str = doc("Folder or URL under which the tables are stored.", "", form="location")
    connection: str = doc("Airflow connection id, for an object store or a database.", "", form="connection")
    catalog: str = doc("Catalog and schema for named tables (`catalog.schema`), instead of paths alone.", "")
    name: str = doc(
        "Name of the target among `targets`. Copies in `default` have the names of their tables, those in other "
        "targets `<table>@<name>`.",
        DEFAULT_TARGET,
        form="name",
    )
    options: dict[str, Any] = doc("Options of the target type, at the same level as `type`.", dict, inline=True)


@dataclass(frozen=True)
class Staging:
    location: str = doc("Folder or URL of the change log, reachable from every worker and executor.", form="location")
    connection: str = doc("Airflow connection id, for an object store.", "", form="connection")
    retain: timedelta = doc("How long windows are kept after every table has applied them.", timedelta(days=7))


@dataclass(frozen=True)
class Spark:
    connection: str = doc("Airflow connection id of type `spark`.", "spark_default", form="connection")
    conf: dict[str, str] = doc("Spark settings of the jobs.", dict, form="spark")
    engine: EngineMode = doc(
        f"`auto`: the driver does work on at most {LOCAL_ROWS:,} rows of a table, and folds and uploads at most "
        f"{LOCAL_UPLOAD_ROWS:,} for a warehouse, if it can; Spark's tasks do all other work. `spark`: Spark's tasks do "
        "all work.",
        EngineMode.AUTO,
    )


@dataclass(frozen=True)
class Resync:
    max_delete: float = doc(
        "Largest fraction of a table's rows (0 to 1) that a resync may delete without an operator's approval.",
        0.2,
        minimum=0,
        maximum=1,
    )


@dataclass(frozen=True)
class Dag:
    owner: str = doc("Owner shown in Airflow.", "airflow")
    tags: tuple[str, ...] = doc("Tags shown in Airflow.", tuple, form="tag")
    retries: int = doc(
        "Maximum number of retries of a task, for errors that a retry can fix.", 2, minimum=0, maximum=20
    )
    retry_delay: timedelta = doc("Delay before the first retry; it doubles with each retry.", timedelta(seconds=30))
    pool: str = doc("Airflow pool of the Spark tasks.", "default_pool")


@dataclass(frozen=True, kw_only=True)
class Definition:
    name: str = doc(
        "Name of the replicator and of its DAG: lower-case letters, digits, `_`; starts with a letter.", form="name"
    )
    source: Source = doc("The source of the changes.")
    target: Target | None = doc("The system that contains the copies. Either this or `targets`.", None)
    targets: tuple[Target, ...] = doc(
        "Several systems with copies of the same tables, from one read of the source: each has the keys of `target`.",
        tuple,
        non_empty=True,
    )
    tables: tuple[TableRule, ...] = doc("Which tables are copied, and how.", non_empty=True)
    staging: Staging = doc("Storage of the change log.")
    schedule: str | None = doc("Cron expression (UTC); without it no run starts by time.", None, form="cron")
    triggered_by: tuple[str, ...] = doc(
        "Airflow assets, by name: an update of any of them starts a run, too.", tuple, form="asset"
    )
    spark: Spark = doc("Settings of the Spark jobs.", Spark)
    snapshot: SnapshotDefaults = doc("Full copies of tables, unless a table says otherwise.", SnapshotDefaults)
    schema_changes: SchemaPolicy = doc("What happens at schema changes of the source.", SchemaPolicy)
    new_tables: OnNewTable = doc(
        "Tables that appear under a pattern after the first run: `copy` copies them, `ask` waits for an operator's "
        "answer, `ignore` copies only tables that the YAML names.",
        OnNewTable.COPY,
    )
    dropped_tables: OnDroppedTable | None = doc(
        "Copies of tables that the source no longer lists: `keep` leaves them as they are, `drop` drops them, too, if "
        "the source certainly dropped the table, `stop` blocks the table. Default: `keep` for tables under a pattern, "
        "`stop` for tables by name.",
        None,
    )
    verify: Verify = doc("Comparisons of the copies with their source, by a schedule.", Verify)
    freshness: timedelta = doc("Maximum age of the copy; an older copy is reported as late.", timedelta(hours=1))
    retry_for: timedelta | None = doc(
        "How long a table may be `failing` before it stops: it is `blocked` then, until `airflow cdc resume`. Without "
        "this key runs try again without a limit.",
        None,
    )
    objective: str = doc(
        "Smallest part of the last 30 days in which a copy must not be late (`99.5%`); less is shown as missed.",
        "",
        form="percent",
    )
    notify: tuple[Notification, ...] = doc("Notifications of problems of tables, through notifiers of Airflow.", tuple)
    resync: Resync = doc("Limits of a resync.", Resync)
    hash_connection: str = doc(
        "Airflow connection whose password is the key of `columns.hash`: at least 16 characters. A change of the "
        "password requires a resync.",
        "",
        form="connection",
    )
    dag: Dag = doc("Settings of the Airflow DAG.", Dag)
    version: int = doc("Version of this YAML format.", 1, minimum=1, maximum=1, form="version")

    @property
    def all_targets(self) -> tuple[Target, ...]:
        return self.targets or ((self.target,) if self.target else ())

    @property
    def target_names(self) -> tuple[str, ...]:
        return tuple(target.name for target in self.all_targets)

    @property
    def only_target(self) -> Target:
        """Of a definition that has one target."""
        (target,) = self.all_targets
        return target

    def with_target(self, name: str) -> Definition:
        """With this target alone: the definition for the copies in it."""
        return replace(self, target=self.target_named(name), targets=())

    def target_named(self, name: str) -> Target:
        return next(one for one in self.all_targets if one.name == name)


def repairs_itself(definition: Definition, rule: TableRule) -> bool:
    """Whether a table is copied again, without an operator, where its changes cannot be continued. A copy without rows
    repairs nothing. ``rule``: of a selected table."""
    if rule.snapshot.mode is SnapshotMode.WHEN_NEEDED:
        return True
    return definition.source.reconcile is Reconcile.AUTO and rule.snapshot.extent.rows


def format_duration(length: timedelta) -> str:
    """A duration in the notation of the YAML: ``7d``, ``90s``."""
    seconds = int(length.total_seconds())
    unit, size = next((u, s) for u, s in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)) if seconds % s == 0)
    return f"{seconds // size}{unit}"


def rule_fingerprint(definition: Definition, rule: TableRule, hash_key_id: str = "") -> str:
    """SHA-256 over the settings that determine the content of a target table. A change of it requires a resync.
    ``hash_key_id`` identifies the key of ``columns.hash`` without revealing it."""
    content = _read_by(definition, rule, hash_key_id) | {"on_delete": rule.on_delete.value}
    if rule.ignore:
        content["ignore"] = sorted(rule.ignore)
    if rule.history is not History.NONE:
        content["history"] = rule.history.value
    return _fingerprint(content)


def log_fingerprint(definition: Definition, rule: TableRule, hash_key_id: str = "") -> str:
    """SHA-256 over the settings that determine the records of a table in the change log, the same for all copies."""
    return _fingerprint(_read_by(definition, rule, hash_key_id))


def hidden_fingerprint(rule: TableRule, hash_key_id: str) -> str:
    """SHA-256 over the settings by which values of columns are hashed, masked or truncated."""
    columns = rule.columns
    casts = {name: kind for name, kind in columns.converted.items() if name in columns.hidden}
    content = {
        "hash": sorted(columns.hash),
        "mask": dict(columns.mask),
        "truncate": dict(columns.truncate),
        "cast": casts,
    }
    return _fingerprint(content | ({"hash_key": hash_key_id} if columns.hash else {}))


def _read_by(definition: Definition, rule: TableRule, hash_key_id: str) -> dict[str, Any]:
    columns = {name: value for name, value in to_plain(rule.columns).items() if value or name in ("include", "exclude")}
    content = {
        "source": [definition.source.type, definition.source.connection],
        "columns": columns,
        "where": to_plain(rule.where),
        "key": list(rule.key),
    }
    if rule.on_unrepresentable is not OnUnrepresentable.STOP:
        content["on_unrepresentable"] = rule.on_unrepresentable.value
    if rule.columns.hash:
        content["hash_key"] = hash_key_id
    if rule.shard_column:
        content["shard"] = [rule.shard_column, rule.shard_value]
    return content


def whole_fingerprint(definition: Definition) -> str:
    """SHA-256 over everything that the YAML says."""
    return _fingerprint(to_plain(definition))


def _fingerprint(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
