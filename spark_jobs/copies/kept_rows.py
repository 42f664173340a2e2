"""Rows of a target that a new copy keeps although the source does not have them any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DateType, DecimalType, IntegralType, StringType

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import row_schema
from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import TEXT_OF, TableSchema
from airflow_cdc_provider.core.table.schema_changes import same_columns
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.copied_rows import literal
from spark_jobs.copies.delete_guard import absent_rows
from spark_jobs.copies.own_columns import is_technical

WITH_ONE_TEXT = (BooleanType, DateType, DecimalType, IntegralType)
"""Types whose values have one text, in Spark and in the sources."""


def names_in_record(columns: Iterable[str], before: TableSchema | None) -> dict[str, str]:
    """Column of the target → its name in ``before``, the schema of the control record. Former columns are not in it."""
    names = row_schema(before).names if before else ()
    spelled = {name.lower(): name for name in names} | {name: name for name in names}
    known = {name: spelled.get(name) or spelled.get(name.lower()) for name in columns}
    return {name: in_record for name, in_record in known.items() if in_record}


def missing_columns(columns: Iterable[str], before: TableSchema | None) -> list[str]:
    """Columns of the control record that the target lacks."""
    found = set(names_in_record(columns, before).values())
    return [name for name in row_schema(before).names if name not in found] if before else []


def same_in_copy(before: TableSchema, copied: TableSchema) -> dict[str, str]:
    """Name in the control record → name in the new copy of the columns in both. Without ids those are the same that are
    made from one column of the source: the YAML may rename it."""
    columns = row_schema(before).columns
    of_source = {one.source_name: one.name for one in copied.columns if one.source_name and not one.text_of}
    without_id = [one for one in columns if not one.id and one.source_name and not one.text_of]
    pairs = same_columns(columns, copied.columns) | {one.name: of_source.get(one.source_name, "") for one in without_id}
    texts = {one.name: f"{TEXT_OF}{pairs[one.text_of]}" for one in columns if one.text_of in pairs and not one.id}
    pairs |= {name: now if now in copied.names else "" for name, now in texts.items()}
    return {name: now for name, now in pairs.items() if now}


def under_names_of_copy(old: DataFrame, before: TableSchema | None, copied: TableSchema) -> DataFrame:
    """``old`` with the names that its columns have in the copy: a name may belong to another column by now. Of the
    other columns only the technical ones: the table may have columns that do not belong to the copy any more, and texts
    of their values."""
    if before is None:
        return old
    names, same = names_in_record(old.columns, before), same_in_copy(before, copied)
    columns = [
        (name, same.get(names[name]) if name in names else name)
        for name in old.columns
        if name in names or is_technical(name)
    ]
    return old.select(*(F.col(quoted(name)).alias(now) for name, now in columns if now))


def kept_rows(key: tuple[str, ...], old: DataFrame, new: DataFrame, technical: Mapping[str, pa.Scalar]) -> DataFrame:
    """The rows that ``on_delete`` keeps although the copy does not contain them: marked as deleted with ``soft``, else
    unchanged. Their order key is the floor of the copy, like that of all other rows."""
    rows = absent_rows(key, old, new).withColumns({name: literal(of) for name, of in technical.items()})
    return rows.withColumn(DELETED, F.lit(True)) if DELETED in technical else rows


def require_columns(task: TableTask, where: str, missing: Sequence[str], kept: DataFrame) -> None:
    """Of the copy, if there are rows to keep: they have lost the values of a column that was dropped or renamed in the
    target. Raises Blocked."""
    if missing and not kept.isEmpty():
        raise Blocked.of(
            "CPY024",
            f"{task.table} keeps rows that the source does not have any more, and the target lacks columns of them",
            where=where,
            found=f"without {', '.join(missing)}",
            allowed="the columns of the copy",
            do="give the columns their names back, or add them with the values of these rows, and resync; or set "
            "another `target`, which begins without them",
            data="the target is unchanged",
        )


def require_same_values(
    task: TableTask, where: str, control: ControlRecord, hidden_sha256: str, copied: TableSchema, kept: DataFrame
) -> None:
    """Of columns that are hashed, masked or truncated: the kept rows, which may be those of a history, have the values
    that the YAML asked for when they were written. ``hidden_sha256``: the fingerprint of these settings now. Raises
    Blocked."""
    if control.schema is None:
        return
    same = same_in_copy(control.schema, copied)
    other_settings = bool(control.hidden_sha256) and control.hidden_sha256 != hidden_sha256
    other = [
        now
        for name, now in same.items()
        if (hidden := copied.column(now).is_masked) != control.schema.column(name).is_masked
        or (hidden and other_settings)
    ]
    found = _with_values(kept, [name for name in other if name in kept.columns])
    if found:
        is_history = task.rule.history is not History.NONE
        rows = "earlier rows in its history" if is_history else "rows that the source has no more"
        raise Blocked.of(
            "CPY025",
            f"{task.table} keeps {rows}, and the YAML hides their values otherwise now",
            where=where,
            found=f"values of {', '.join(found)}",
            allowed="NULL in the columns whose hash, mask or truncate has changed",
            do="set these columns of these rows to NULL in the target, or delete the rows there, and resync; or set "
            "another `target`, which begins without them",
            data="the target is unchanged",
        )


def _with_values(kept: DataFrame, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    (row,) = kept.select(*(F.max(F.col(quoted(name)).isNotNull()).alias(name) for name in names)).collect()
    return [name for name in names if row[name]]


def as_columns_of(rows: DataFrame, kept: DataFrame, task: TableTask) -> DataFrame:
    """Raises Blocked where a value of ``kept`` does not fit into the column of ``rows``."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    before = {field.name: field.dataType for field in kept.schema.fields if field.name in types}
    cast = {name: F.col(quoted(name)).try_cast(types[name]) for name in before}
    lost = {
        name: ~_is_same(name, cast[name], before[name], types[name]) for name in before if before[name] != types[name]
    }
    if lost:
        found = kept.select(*(F.max(F.coalesce(any_lost, F.lit(True))).alias(name) for name, any_lost in lost.items()))
        (row,) = found.collect()
        if unfit := [name for name in lost if row[name]]:
            raise _unfit(task, unfit)
    return kept.select(*(value.alias(name) for name, value in cast.items()))


def _is_same(name: str, cast: SparkColumn, before: DataType, now: DataType) -> SparkColumn:
    """Whether the value is that of the kept row. A text is that of the source for some types only."""
    value = F.col(quoted(name))
    if isinstance(now, StringType) and not isinstance(before, WITH_ONE_TEXT):
        return value.isNull()
    return cast.try_cast(before).eqNullSafe(value)


def _unfit(task: TableTask, columns: Sequence[str]) -> Blocked:
    return Blocked.of(
        "CPY015",
        f"{task.table} keeps rows that the source does not have any more, and they do not fit its new types",
        where=task.table,
        found=", ".join(columns),
        do="correct these rows in the target; or set another `target`, which begins without them",
        data="the target is unchanged",
    )
