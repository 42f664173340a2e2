"""The exact SQL for BigQuery, its names and types."""

from __future__ import annotations

from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS, TARGET_ALIAS, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.bigquery.bounds import bounded_columns, bounds_condition, bounds_query
from airflow_cdc_provider.targets.bigquery.cursor import JobCursor
from airflow_cdc_provider.targets.bigquery.failures import Cause, JobFailed, problem_of
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions, Json, Partition, PartitionUnit
from airflow_cdc_provider.targets.bigquery.server import BigQueryServer, collations_of, expirations_of, type_of
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql, text_literal
from airflow_cdc_provider.targets.database.declared_types import other_types
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.database.names import own_control_table

ID = Column("id", LogicalType(Kind.INT64), nullable=False)
NAME = Column('na"me', LogicalType(Kind.TEXT))
KEYED = TableSchema("public.t", (ID, NAME), ("id",))
SQL = BigQuerySql("my-project", "shop")


def statements(plan: MergePlan, bounds: str = "") -> list[str]:
    """With short aliases."""
    texts = (statement.text for statement in merge_statements(SQL, "T", "S", plan, bounds))
    return [text.replace(TARGET_ALIAS, "t").replace(STAGED_ALIAS, "s") for text in texts]


def test_a_keyed_merge() -> None:
    assert statements(MergePlan(KEYED, OnDelete.HARD)) == [
        "DELETE FROM T AS t WHERE EXISTS (SELECT 1 FROM S AS s WHERE s.`_cdc_op` IN ('D') AND t.`id` = s.`id`"
        " AND s.`_cdc_order` > t.`_cdc_order`)",
        "UPDATE T AS t SET `na_me` = s.`na_me`, `_cdc_order` = s.`_cdc_order` FROM S AS s"
        " WHERE s.`_cdc_op` IN ('U', 'P') AND t.`id` = s.`id` AND s.`_cdc_order` > t.`_cdc_order`",
        "INSERT INTO T (`id`, `na_me`, `_cdc_order`) SELECT s.`id`, s.`na_me`, s.`_cdc_order` FROM S AS s"
        " WHERE s.`_cdc_op` IN ('U', 'P') AND NOT EXISTS (SELECT 1 FROM T AS t WHERE t.`id` = s.`id`)",
    ]


def test_every_statement_of_a_merge_reads_the_range_of_the_keys_only() -> None:
    bounds = f"{TARGET_ALIAS}.`id` BETWEEN 1 AND 5"
    plan = MergePlan(KEYED, OnDelete.SOFT, partial=True, not_older=True)
    for text in statements(plan, bounds):
        assert "t.`id` = s.`id` AND t.`id` BETWEEN 1 AND 5" in text


def test_the_range_of_keys_covers_the_key_columns_by_which_the_table_is_arranged() -> None:
    at = Column("at", LogicalType(Kind.TIMESTAMPTZ), nullable=False)
    schema = TableSchema("public.t", (ID, at, NAME), ("at", "id"))
    columns = bounded_columns(schema, {"at", "na_me"})
    assert columns == [at]
    assert bounds_query(SQL, "S", columns) == (
        f"SELECT CAST(MIN({STAGED_ALIAS}.`at`) AS STRING) AS bound_0, CAST(MAX({STAGED_ALIAS}.`at`) AS STRING) AS"
        f" bound_1 FROM S AS {STAGED_ALIAS}"
    )
    assert bounds_condition(SQL, columns, ("2026-01-01 00:00:00+00", "2026-01-02 00:00:00+00")) == (
        f"{TARGET_ALIAS}.`at` BETWEEN CAST('2026-01-01 00:00:00+00' AS TIMESTAMP) AND"
        " CAST('2026-01-02 00:00:00+00' AS TIMESTAMP)"
    )


@pytest.mark.parametrize("bounds", [(None, None), ("a", "b" * 1025)], ids=["no rows", "a long key"])
def test_a_range_that_does_not_help_is_left_out(bounds: tuple[str | None, str | None]) -> None:
    assert bounds_condition(SQL, [Column("k", LogicalType(Kind.TEXT))], bounds) == ""


def test_a_nullable_key_column_has_no_range_since_null_is_in_none() -> None:
    schema = TableSchema("public.t", (Column("n", LogicalType(Kind.INT32)),), ("n",))
    assert bounded_columns(schema, {"n"}) == []


def test_a_key_of_floats_finds_nan() -> None:
    """In BigQuery, NaN does not equal itself."""
    column = Column("k", LogicalType(Kind.FLOAT64), nullable=False)
    assert SQL.equal(column, "t.k", "s.k") == "TO_JSON_STRING(t.k) = TO_JSON_STRING(s.k)"


def test_rows_without_a_key_are_compared_by_one_text() -> None:
    delete, insert = statements(MergePlan(TableSchema("public.t", (ID, NAME)), OnDelete.HARD))
    assert delete == (
        "DELETE FROM T AS t WHERE EXISTS (SELECT 1 FROM S AS s WHERE s.`_cdc_op` = 'D'"
        " AND TO_JSON_STRING(STRUCT(t.`id`, t.`na_me`)) = TO_JSON_STRING(STRUCT(s.`id`, s.`na_me`)))"
    )
    assert insert.startswith("INSERT INTO T (`id`, `na_me`) SELECT")


def test_no_statement_changes_rows_without_a_condition() -> None:
    """BigQuery refuses UPDATE and DELETE without WHERE."""
    added = Column("n", LogicalType(Kind.BYTES), initial='"AP8="')
    plan = MergePlan(TableSchema("public.t", (ID, added)), OnDelete.HARD, truncated=True, added=(added,))
    assert statements(plan)[0] == "UPDATE T SET `n` = FROM_BASE64('AP8=') WHERE TRUE"
    assert "DELETE FROM T AS t WHERE TRUE" in statements(plan)


@pytest.mark.parametrize(
    ("kind", "in_key", "name"),
    [
        (LogicalType(Kind.INT16), False, "INT64"),
        (LogicalType(Kind.DECIMAL, 12, 2), False, "NUMERIC(12,2)"),
        (LogicalType(Kind.DECIMAL, 38, 9), False, "NUMERIC(38,9)"),
        (LogicalType(Kind.DECIMAL, 38, 8), False, "BIGNUMERIC(38,8)"),
        (LogicalType(Kind.DECIMAL, 38, 38), False, "BIGNUMERIC(38,38)"),
        (LogicalType(Kind.DECIMAL, 60, 39), False, "STRING"),
        (LogicalType(Kind.FLOAT32), False, "FLOAT64"),
        (LogicalType(Kind.TIMESTAMP), False, "DATETIME"),
        (LogicalType(Kind.TIMESTAMPTZ), False, "TIMESTAMP"),
        (LogicalType(Kind.JSON), False, "JSON"),
        (LogicalType(Kind.JSON), True, "STRING"),
    ],
    ids=str,
)
def test_types(kind: LogicalType, in_key: bool, name: str) -> None:
    sql = BigQuerySql("p", "d", json=Json.JSON)
    assert sql.column_type(Column("c", kind), in_key) == name


def test_documents_are_text_by_default() -> None:
    assert SQL.column_type(Column("j", LogicalType(Kind.JSON)), in_key=False) == "STRING"


@pytest.mark.parametrize(
    ("kind", "canonical", "text"),
    [
        (Kind.TEXT, "it's a \\\n", r"CAST('it\'s a \\\u000a' AS STRING)"),
        (Kind.BYTES, b64encode(b"\x00\xff").decode(), "FROM_BASE64('AP8=')"),
        (Kind.BOOLEAN, True, "CAST('true' AS BOOL)"),
        (Kind.FLOAT64, "NaN", "CAST('NaN' AS FLOAT64)"),
        (Kind.FLOAT64, 0.1, "CAST('0.1' AS FLOAT64)"),
        (Kind.FLOAT32, 0.1, "CAST('0.10000000149011612' AS FLOAT64)"),
        (Kind.FLOAT32, "NaN", "CAST('NaN' AS FLOAT64)"),
        (Kind.TIMESTAMP, "2026-01-01T00:00:00", "CAST('2026-01-01T00:00:00' AS DATETIME)"),
        (Kind.DATE, None, "CAST(NULL AS DATE)"),
    ],
)
def test_literals(kind: Kind, canonical: Any, text: str) -> None:
    assert SQL.literal(canonical, Column("c", LogicalType(kind))) == text


@pytest.mark.parametrize(
    ("name", "column"),
    [("order", "order"), ("größe (m)", "größe _m_"), ("a.b`c", "a_b_c"), ("1st", "_1st"), ("x-y z", "x-y z")],
)
def test_characters_that_a_column_name_cannot_have_become_underscores(name: str, column: str) -> None:
    assert column_name(name) == column


def test_a_copy_is_partitioned_and_clustered_by_its_key_or_as_the_rule_demands() -> None:
    columns = (
        ID,
        Column("f", LogicalType(Kind.FLOAT64), nullable=False),
        Column("day", LogicalType(Kind.DATE)),
        Column("at", LogicalType(Kind.TIMESTAMPTZ)),
    )
    schema = TableSchema("public.t", columns, ("f", "id"))

    def layout(*cluster_by: str, **partition: Any) -> str:
        partitions = {"public.t": Partition("public.t", **partition)} if partition else {}
        return BigQuerySql("p", "d", partitions=partitions).layout(schema, cluster_by)

    assert layout() == " CLUSTER BY `id`"
    assert layout("day", "id") == " CLUSTER BY `day`, `id`"
    assert layout("id", column="day") == " PARTITION BY `day` CLUSTER BY `id`"
    by_month = layout("id", column="at", by=PartitionUnit.MONTH)
    assert by_month == " PARTITION BY TIMESTAMP_TRUNC(`at`, MONTH) CLUSTER BY `id`"
    by_range = layout("id", column="id", by=PartitionUnit.RANGE, start=0, end=100, interval=10)
    assert by_range == " PARTITION BY RANGE_BUCKET(`id`, GENERATE_ARRAY(0, 100, 10)) CLUSTER BY `id`"


def test_staging_tables_expire_and_tables_have_labels() -> None:
    sql = BigQuerySql("p", "d", labels={"team": "x"})
    assert sql.create_table("t", ["`n` INT64"], "cdc:1", staging=False) == [
        "CREATE TABLE IF NOT EXISTS `p`.`d`.`t` (`n` INT64) DEFAULT COLLATE ''"
        " OPTIONS(description = 'cdc:1', labels = [('team', 'x')])"
    ]
    assert "expiration_timestamp" in sql.create_table("t", ["`n` INT64"], "", staging=True)[0]


def test_texts_are_quoted_exactly() -> None:
    assert text_literal("it's \\ \n\x00 %s €") == r"'it\'s \\ \u000a\u0000 %s €'"


@pytest.mark.parametrize(
    ("reason", "message", "cause", "code"),
    [
        ("invalidQuery", "CDC_SUPERSEDED at [3:1]", Cause.SUPERSEDED, ""),
        ("invalidQuery", "CDC_NO_ROW at [3:1]", Cause.NO_ROW, ""),
        ("invalidQuery", "Transaction is aborted due to concurrent update against table t", Cause.CONFLICT, "TGT065"),
        ("rateLimitExceeded", "Exceeded rate limits", Cause.PACED, "TGT068"),
        ("backendError", "try again", Cause.PACED, "TGT064"),
        ("accessDenied", "no permission bigquery.jobs.create", Cause.DENIED, "TGT062"),
        ("notFound", "no table", Cause.MISSING, "TGT067"),
        ("bytesBilledLimitExceeded", "too much", Cause.BILLED, "TGT070"),
        ("invalid", "Bad value: 'secret'", Cause.VALUE, "TGT063"),
        ("timeout", "6 hours", Cause.OTHER, "TGT092"),
        ("notImplemented", "no", Cause.OTHER, "TGT091"),
        ("something", "new", Cause.OTHER, "TGT093"),
    ],
)
def test_causes_of_failed_jobs(reason: str, message: str, cause: Cause, code: str) -> None:
    failed = JobFailed(reason, message)
    assert failed.cause is cause
    if code:
        (problem,) = problem_of(failed, "here", "GRANT x").problems
        assert problem.code == code and "secret" not in str(problem)
        assert ("GRANT x" in problem.do) == (code in ("TGT062", "TGT067"))


def test_columns_that_ignore_case_are_found_in_the_description_of_a_table() -> None:
    fields = [{"name": "code", "type": "STRING", "collation": "und:ci"}, {"name": "v", "type": "STRING"}]
    inherited = {"schema": {"fields": fields}, "defaultCollation": "und:ci"}
    assert collations_of(inherited) == ["code und:ci", "new columns und:ci"]
    pinned = {"schema": {"fields": [{"name": "v", "type": "STRING", "collation": ""}]}, "defaultCollation": ""}
    assert collations_of(pinned) == []


def test_expirations_are_found_in_the_description_of_a_table() -> None:
    expiring = {"expirationTime": "1800000000000", "timePartitioning": {"type": "DAY", "expirationMs": "5184000000"}}
    assert expirations_of(expiring) == ["expiration_timestamp", "partition_expiration_days"]
    assert expirations_of({"timePartitioning": {"type": "DAY"}, "clustering": {"fields": ["id"]}}) == []


def test_what_a_table_loses_and_how_it_compares_is_in_the_descriptions_that_its_state_was_read_from() -> None:
    asked: list[str] = []

    def get_table(name: str, retry: Any) -> Any:
        asked.append(name)
        described = {"schema": {"fields": []}, "defaultCollation": "und:ci", "expirationTime": "1800000000000"}
        return SimpleNamespace(description="cdc", schema=[], to_api_repr=lambda: described)

    server = BigQueryServer(ConnectionInfo(), BigQueryOptions("shop", project="p"), "shop")
    jobs: Any = SimpleNamespace(client=SimpleNamespace(get_table=get_table, list_rows=lambda *_, **__: []))
    cursor, control = JobCursor(jobs), own_control_table("t")
    assert (list(server.list_rows(cursor, control, ())), server.comment(cursor, "t")) == ([], "cdc")
    read = [f"p.shop.{control}", "p.shop.t"]
    assert asked == read
    assert server.other_collations(cursor, "t") == ["new columns und:ci"]
    assert server.losses_of_rows(cursor, "t") == ["t: expiration_timestamp", f"{control}: expiration_timestamp"]
    assert asked == read, "each description is asked for once"
    assert server.comment(cursor, "t") == "cdc"
    assert server.losses_of_rows(JobCursor(jobs), "t") == server.losses_of_rows(cursor, "t")
    assert asked == [*read, "p.shop.t", "p.shop.t", f"p.shop.{control}"], "a state is read anew"


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (LogicalType(Kind.INT32), {"type": "INTEGER"}),
        (LogicalType(Kind.FLOAT32), {"type": "FLOAT"}),
        (LogicalType(Kind.BOOLEAN), {"type": "BOOLEAN"}),
        (LogicalType(Kind.DECIMAL, 10, 2), {"type": "NUMERIC", "precision": "10", "scale": "2"}),
        (LogicalType(Kind.DECIMAL, 10, 0), {"type": "NUMERIC", "precision": "10"}),
        (LogicalType(Kind.DECIMAL, 38, 20), {"type": "BIGNUMERIC", "precision": "38", "scale": "20"}),
        (LogicalType(Kind.TIMESTAMP), {"type": "DATETIME"}),
    ],
    ids=str,
)
def test_the_type_of_a_copy_is_that_of_the_catalog(kind: LogicalType, field: dict[str, str]) -> None:
    column = Column("c", kind)
    assert others(column, field) == []


@pytest.mark.parametrize(
    ("kind", "field", "keeps"),
    [
        (LogicalType(Kind.INT64), {"type": "FLOAT"}, False),
        (LogicalType(Kind.INT64), {"type": "NUMERIC"}, True),
        (LogicalType(Kind.DECIMAL, 10, 2), {"type": "FLOAT"}, False),
        (LogicalType(Kind.DECIMAL, 10, 2), {"type": "NUMERIC"}, True),
        (LogicalType(Kind.DECIMAL, 10, 2), {"type": "BIGNUMERIC"}, True),
        (LogicalType(Kind.DECIMAL, 10, 2), {"type": "NUMERIC", "precision": "10", "scale": "1"}, False),
        (LogicalType(Kind.DATE), {"type": "DATETIME"}, False),
    ],
    ids=str,
)
def test_a_column_that_somebody_has_altered_keeps_every_value_or_is_named(
    kind: LogicalType, field: dict[str, str], keeps: bool
) -> None:
    assert (others(Column("c", kind), field) == []) is keeps


def others(column: Column, field: dict[str, str]) -> list[str]:
    server = BigQueryServer(ConnectionInfo(), BigQueryOptions("shop", project="p"), "shop")
    types = {server.sql.column_id("c"): type_of({"name": "c", **field})}
    return list(other_types(server, types, [column], ["id"]))
