"""The exact SQL for Redshift, the files that it loads, and the parameters of a login."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import OnDelete, Target
from airflow_cdc_provider.core.table.merge_plan import (
    DELETED,
    KNOWN,
    OP,
    ORDER,
    STAGED_ALIAS,
    TARGET_ALIAS,
    MergePlan,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.database.sql import column_list
from airflow_cdc_provider.targets.database.stage import Stage, folder
from airflow_cdc_provider.targets.redshift.catalog import grant
from airflow_cdc_provider.targets.redshift.files import load_statements, typed, unload_statement
from airflow_cdc_provider.targets.redshift.options import Json, RedshiftOptions
from airflow_cdc_provider.targets.redshift.server import RedshiftServer
from airflow_cdc_provider.targets.redshift.session import library, login, tls_warnings
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql

ID = Column("id", LogicalType(Kind.INT64), nullable=False)
NAME = Column('Na"me', LogicalType(Kind.TEXT))
AT = Column("at", LogicalType(Kind.TIMESTAMPTZ))
KEYED = TableSchema("public.t", (ID, NAME), ("id",))
SQL = RedshiftSql("Shop")
SUPER = RedshiftSql("Shop", Json.SUPER)
ROLE = "arn:aws:iam::123456789012:role/loader"
MANIFEST = "s3://lake/stage/x.manifest"


def statements(plan: MergePlan, sql: RedshiftSql = SQL) -> list[str]:
    """With short aliases."""
    texts = (statement.text for statement in merge_statements(sql, '"shop"."t"', "S", plan))
    return [text.replace(TARGET_ALIAS, "t").replace(STAGED_ALIAS, "s") for text in texts]


def test_a_keyed_merge_whose_delete_has_no_alias() -> None:
    assert statements(MergePlan(KEYED, OnDelete.HARD)) == [
        """DELETE FROM "shop"."t" USING S AS s WHERE s."_cdc_op" IN ('D') AND "shop"."t"."id" = s."id\""""
        """ AND s."_cdc_order" > "shop"."t"."_cdc_order\"""",
        """UPDATE "shop"."t" AS t SET "na""me" = s."na""me", "_cdc_order" = s."_cdc_order" FROM S AS s"""
        """ WHERE s."_cdc_op" IN ('U', 'P') AND t."id" = s."id" AND s."_cdc_order" > t."_cdc_order\"""",
        """INSERT INTO "shop"."t" ("id", "na""me", "_cdc_order")"""
        """ SELECT s."id", s."na""me", s."_cdc_order" FROM S AS s"""
        """ WHERE s."_cdc_op" IN ('U', 'P') AND NOT EXISTS (SELECT 1 FROM "shop"."t" AS t WHERE t."id" = s."id")""",
    ]


@pytest.mark.parametrize(
    ("kind", "nullable", "equal"),
    [
        (Kind.INT32, False, "t = s"),
        (Kind.INT32, True, "COALESCE(t, 0) = COALESCE(s, 0) AND {is t} = {is s}"),
        (Kind.TEXT, False, "t = s AND OCTET_LENGTH(t) = OCTET_LENGTH(s)"),
        (
            Kind.TEXT,
            True,
            "COALESCE(t, '') = COALESCE(s, '') AND COALESCE(OCTET_LENGTH(t), -1) = COALESCE(OCTET_LENGTH(s), -1)",
        ),
        (Kind.FLOAT64, False, "CAST(t AS VARCHAR(32)) = CAST(s AS VARCHAR(32)) AND t = s"),
        (Kind.BYTES, False, "t = s"),
        (Kind.BYTES, True, "COALESCE(TO_HEX(t), '-') = COALESCE(TO_HEX(s), '-')"),
        (Kind.DATE, True, "COALESCE(t, '1970-01-01'::DATE) = COALESCE(s, '1970-01-01'::DATE) AND {is t} = {is s}"),
    ],
)
def test_keys_are_compared_by_equations_in_which_blanks_at_the_end_count(
    kind: Kind, nullable: bool, equal: str
) -> None:
    wanted = equal.replace("{is t}", "CASE WHEN t IS NULL THEN 0 ELSE 1 END")
    wanted = wanted.replace("{is s}", "CASE WHEN s IS NULL THEN 0 ELSE 1 END")
    assert SQL.equal(Column("k", LogicalType(kind), nullable), "t", "s") == wanted


def test_rows_without_a_key_are_compared_by_values_and_a_float_by_its_text_too() -> None:
    schema = TableSchema("public.t", (Column("f", LogicalType(Kind.FLOAT32)), Column("j", LogicalType(Kind.JSON))))
    delete, _ = statements(MergePlan(schema, OnDelete.HARD), SUPER)
    assert delete == (
        """DELETE FROM "shop"."t" USING S AS s WHERE s."_cdc_op" = 'D'"""
        """ AND COALESCE(CAST("shop"."t"."f" AS VARCHAR(32)), '') = COALESCE(CAST(s."f" AS VARCHAR(32)), '')"""
        """ AND ("shop"."t"."f" = s."f" OR "shop"."t"."f" <> "shop"."t"."f" OR "shop"."t"."f" IS NULL)"""
        """ AND COALESCE(JSON_SERIALIZE("shop"."t"."j"), '') = COALESCE(JSON_SERIALIZE(s."j"), '')"""
        """ AND COALESCE(OCTET_LENGTH(JSON_SERIALIZE("shop"."t"."j")), -1)"""
        """ = COALESCE(OCTET_LENGTH(JSON_SERIALIZE(s."j")), -1)"""
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LogicalType(Kind.INT16), "SMALLINT"),
        (LogicalType(Kind.DECIMAL, 18, 2), "DECIMAL(18,2)"),
        (LogicalType(Kind.DECIMAL, 19, 2), "DECIMAL(20,2)"),
        (LogicalType(Kind.DECIMAL, 38, 37), "DECIMAL(38,37)"),
        (LogicalType(Kind.DECIMAL, 38, 38), "VARCHAR(64)"),
        (LogicalType(Kind.BYTES), "VARBYTE(32767)"),
        (LogicalType(Kind.UUID), "VARCHAR(36)"),
        (LogicalType(Kind.JSON), "VARCHAR(65535)"),
        (LogicalType(Kind.TIMESTAMPTZ), "TIMESTAMPTZ"),
    ],
    ids=str,
)
def test_types(kind: LogicalType, name: str) -> None:
    assert SQL.column_type(Column("c", kind), in_key=False) == name


def test_a_document_in_a_key_is_text() -> None:
    column = Column("j", LogicalType(Kind.JSON))
    assert [SUPER.column_type(column, in_key) for in_key in (False, True)] == ["SUPER", "VARCHAR(65535)"]
    assert SUPER.equal(column, "t", "s").startswith("COALESCE(t, '')")


@pytest.mark.parametrize(
    ("columns", "key", "cluster_by", "layout"),
    [
        ([ID], ("id",), (), ' DISTSTYLE KEY DISTKEY ("id") COMPOUND SORTKEY ("id")'),
        ([ID, AT], ("id",), ("at", "id"), ' DISTSTYLE KEY DISTKEY ("id") COMPOUND SORTKEY ("at", "id")'),
        ([ID, NAME], ("id", 'Na"me'), (), ' DISTSTYLE AUTO COMPOUND SORTKEY ("id", "na""me")'),
        ([NAME], ('Na"me',), (), ' DISTSTYLE AUTO COMPOUND SORTKEY ("na""me")'),
        ([Column("b", LogicalType(Kind.BYTES), False)], ("b",), (), " DISTSTYLE AUTO SORTKEY AUTO"),
        ([ID], (), (), " DISTSTYLE AUTO SORTKEY AUTO"),
    ],
)
def test_the_layout_of_a_table(columns: list[Column], key: Any, cluster_by: Any, layout: str) -> None:
    assert SQL.layout(TableSchema("public.t", tuple(columns), key), cluster_by) == layout


def test_a_copy_is_identified_by_its_comment_and_staged_rows_have_no_backup() -> None:
    assert SQL.create_table("T", column_list(SQL, KEYED, soft=True), "cdc:1", False, " SORTKEY AUTO") == [
        'CREATE TABLE IF NOT EXISTS "shop"."t" ("id" BIGINT NOT NULL, "na""me" VARCHAR(65535),'
        ' "_cdc_order" VARCHAR(200) NOT NULL, "_cdc_deleted" BOOLEAN NOT NULL) SORTKEY AUTO',
        """COMMENT ON TABLE "shop"."t" IS 'cdc:1'""",
    ]
    assert SQL.create_table("s", ['"n" INTEGER'], "", True) == [
        'CREATE TABLE IF NOT EXISTS "shop"."s" ("n" INTEGER) BACKUP NO'
    ]


@pytest.mark.parametrize(
    ("kind", "canonical", "text"),
    [
        (Kind.TEXT, "it's a \\", r"'it''s a \\'::VARCHAR(65535)"),
        (Kind.BYTES, b64encode(b"\x00\xff").decode(), "FROM_HEX('00ff')"),
        (Kind.BOOLEAN, True, "'true'::BOOLEAN"),
        (Kind.DATE, None, "NULL::DATE"),
        (Kind.JSON, '{"a": 1}', """JSON_PARSE('{"a": 1}')"""),
    ],
)
def test_literals(kind: Kind, canonical: Any, text: str) -> None:
    assert SUPER.literal(canonical, Column("c", LogicalType(kind))) == text


def test_files_are_copied_into_the_table_itself_where_it_has_no_other_types() -> None:
    (copy,) = load_statements(SQL, "_cdc_s", KEYED, ["id", 'Na"me', ORDER, OP], MANIFEST, ROLE)
    assert copy == f"""COPY "shop"."_cdc_s" FROM '{MANIFEST}' IAM_ROLE '{ROLE}' FORMAT AS PARQUET MANIFEST"""


def test_times_with_a_zone_and_documents_go_through_a_table_of_the_same_transaction() -> None:
    schema = TableSchema("public.t", (ID, AT, Column("j", LogicalType(Kind.JSON))), ("id",))
    assert load_statements(SUPER, "_cdc_c", schema, [*schema.names, ORDER, DELETED], MANIFEST, "default") == [
        'CREATE TABLE "shop"."_cdc_c_l" ("id" BIGINT, "at" TIMESTAMP, "j" VARCHAR(65535),'
        ' "_cdc_order" VARCHAR(65535), "_cdc_deleted" BOOLEAN) BACKUP NO DISTSTYLE EVEN',
        f"""COPY "shop"."_cdc_c_l" FROM '{MANIFEST}' IAM_ROLE default FORMAT AS PARQUET MANIFEST""",
        'INSERT INTO "shop"."_cdc_c" ("id", "at", "j", "_cdc_order", "_cdc_deleted") SELECT "id",'
        """ "at" AT TIME ZONE 'UTC', JSON_PARSE("j"), "_cdc_order", "_cdc_deleted" FROM "shop"."_cdc_c_l\"""",
        'DROP TABLE "shop"."_cdc_c_l"',
    ]


def test_a_file_has_all_columns_of_the_table_in_its_order_with_their_types() -> None:
    kinds = {
        "n": LogicalType(Kind.DECIMAL, 19, 2),
        "deep": LogicalType(Kind.DECIMAL, 38, 38),
        "d": LogicalType(Kind.DATE),
        "at": LogicalType(Kind.TIMESTAMPTZ),
        "y": LogicalType(Kind.BYTES),
    }
    schema = TableSchema("public.t", tuple(Column(name, kind) for name, kind in kinds.items()))
    given = pa.RecordBatch.from_pydict(
        {
            OP: ["I"],
            "y": [b"\x00"],
            "at": pa.array([datetime(2025, 1, 2, 3, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "d": [date(1, 1, 1)],
            "deep": pa.array([Decimal("0." + "0" * 37 + "1")], pa.decimal128(38, 38)),
            "n": pa.array([Decimal("99999999999999999.99")], pa.decimal128(19, 2)),
        }
    )
    (batch,) = typed(schema, [given])
    assert batch.schema == pa.schema(
        {
            "n": pa.decimal128(20, 2),
            "deep": pa.string(),
            "d": pa.date32(),
            "at": pa.timestamp("us"),
            "y": pa.binary(),
            ORDER: pa.string(),
            OP: pa.string(),
            KNOWN: pa.string(),
        }
    )
    assert batch.to_pylist() == [
        {
            "n": Decimal("99999999999999999.99"),
            "deep": "0." + "0" * 37 + "1",
            "d": date(1, 1, 1),
            "at": datetime(2025, 1, 2, 3),
            "y": b"\x00",
            ORDER: None,
            OP: "I",
            KNOWN: None,
        }
    ]


def test_known_columns_are_digits_and_flags_are_booleans_in_a_file() -> None:
    known = pa.array([['Na"me'], None], pa.list_(pa.string()))
    rows = {"id": [1, 2], 'Na"me': ["a", "b"], ORDER: ["1", "2"], OP: ["U", "U"], KNOWN: known}
    (staged,) = typed(KEYED, [pa.RecordBatch.from_pydict(rows)])
    assert staged.column(KNOWN).to_pylist() == ["01", None]
    (copied,) = typed(KEYED, [pa.RecordBatch.from_pydict({"id": [1], 'Na"me': ["a"], ORDER: ["1"], DELETED: [False]})])
    assert copied.schema.names == ["id", 'Na"me', ORDER, DELETED]


def test_no_folder_of_a_staging_table_is_hidden_to_redshift() -> None:
    assert folder("_cdc_0123_s_4567") == "cdc_0123_s_4567"


def test_a_query_is_unloaded_with_its_quotes_doubled() -> None:
    assert unload_statement("SELECT 'a\\\\'", "s3://lake/r/", "default") == (
        r"UNLOAD ('SELECT ''a\\\\''') TO 's3://lake/r/' IAM_ROLE default FORMAT AS PARQUET MANIFEST MAXFILESIZE 128 MB"
    )


@pytest.mark.parametrize(
    ("kind", "grantable", "whom"),
    [
        ("user", True, '"Bo""b" WITH GRANT OPTION'),
        ("user", "False", '"Bo""b"'),
        ("group", True, 'GROUP "Bo""b"'),
        ("role", False, 'ROLE "Bo""b"'),
        ("public", False, "PUBLIC"),
    ],
)
def test_grants_of_the_old_copy_are_statements_for_the_new_one(kind: str, grantable: object, whom: str) -> None:
    assert grant('"shop"."t"', "SELECT", kind, 'Bo"b', grantable) == f'GRANT SELECT ON TABLE "shop"."t" TO {whom}'


@pytest.mark.parametrize(
    ("stage", "keys"),
    [
        ("s3://lake/stage", []),
        ("s3://lake", []),
        ("/data/stage", ["stage"]),
        ("s3://lake/_stage", ["stage"]),
        ("s3://lake/a/.stage", ["stage"]),
    ],
)
def test_the_stage_is_in_s3_and_not_hidden(stage: str, keys: list[str]) -> None:
    target = Target("redshift", connection="w", options={"schema": "shop", "stage": stage})
    assert [key for key, _, _ in RedshiftOptions.option_conflicts(target)] == keys


def connection(**extra: Any) -> ConnectionInfo:
    return ConnectionInfo("warehouse", "cluster", None, "cdc", "secret", "dev", extra)


def test_a_login_by_password_verifies_the_server() -> None:
    assert login(connection(aws_conn_id="aws")) == {
        "host": "cluster",
        "port": 5439,
        "database": "dev",
        "user": "cdc",
        "password": "secret",
        "ssl": True,
        "sslmode": "verify-full",
        "iam": False,
        "is_serverless": False,
    }


def test_a_login_by_iam_has_no_password_and_keys_only_from_the_connection() -> None:
    parameters = login(connection(iam=True, cluster_identifier="one", region="eu-west-1", access_key_id="AKID"))
    assert {name: parameters[name] for name in ("iam", "db_user", "user", "password", "cluster_identifier")} == {
        "iam": True,
        "db_user": "cdc",
        "user": "",
        "password": "",
        "cluster_identifier": "one",
    }
    assert parameters["access_key_id"] == "AKID"


@pytest.mark.parametrize(
    "extra",
    [
        {"credentials_provider": "BrowserSamlCredentialsProvider"},
        {"profile": "default"},
        {"sslmode": "prefer"},
        {"cluster_identifier": "one"},
        {"iam": True, "ssl": False},
        {"unix_sock": "/tmp/s"},
        {"log_path": "/tmp/log"},
        {"iam": "perhaps"},
    ],
    ids=str,
)
def test_options_that_load_code_read_files_or_do_not_verify_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed) as refused:
        login(connection(**extra))
    assert refused.value.problems[0].code == "CON040"


@pytest.mark.parametrize(("extra", "found"), [({"ssl": False}, "ssl: false"), ({"sslmode": "verify-ca"}, "sslmode")])
def test_disabled_verification_is_reported(extra: dict[str, Any], found: str) -> None:
    (problem,) = tls_warnings(connection(**extra))
    assert problem.code == "CON041" and problem.found.startswith(found)
    assert tls_warnings(connection()) == []


WLM = 'Query (12) cancelled by WLM abort action of Query Monitoring Rule "long".'


SERVER = RedshiftServer(
    ConnectionInfo("r", "h", 5439, "u", "p", "d"),
    RedshiftOptions("shop", "s3://lake/x"),
    Stage("s3://lake/x", ConnectionInfo()),
    "shop",
)


class Cancelling:
    """A cursor whose statements, except for SET, are cancelled."""

    def execute(self, statement: str, values: object = None) -> None:
        if not statement.startswith("SET "):
            raise library().ProgrammingError({"C": "57014", "M": WLM})


@pytest.mark.parametrize("message", [WLM, "Query (28572825) cancelled on user's request"])
def test_a_cancelled_query_is_no_second_writer(message: str) -> None:
    (problem,) = SERVER._translate(library().ProgrammingError({"C": "57014", "M": message})).problems
    assert (problem.code, message in problem.found) == ("TGT092", True)
    assert "cdc:shop:*" in problem.do and "stl_wlm_rule_action" in problem.do


def test_a_lock_that_is_not_free_in_time_is_that_of_a_second_writer() -> None:
    with pytest.raises(TargetUnavailable) as caught:
        SERVER.lock_table(Cancelling(), "t")
    (problem,) = caught.value.problems
    assert (problem.code, "idle" in problem.do) == ("TGT065", False)
