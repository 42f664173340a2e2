"""The exact SQL for Snowflake, and the parameters of a login."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.table.merge_plan import DELETED, OP, STAGED_ALIAS, TARGET_ALIAS, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.database.limits import limit_problems
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.snowflake.grants import grant_statements
from airflow_cdc_provider.targets.snowflake.options import Identifiers, Json, SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.server import SnowflakeServer
from airflow_cdc_provider.targets.snowflake.session import login, tls_warnings
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql
from airflow_cdc_provider.targets.snowflake.stage import (
    FILES_AT_ONCE,
    copy_statements,
    external_folder,
    internal_folder,
)

ID = Column("id", LogicalType(Kind.INT64), nullable=False)
NAME = Column('na"me', LogicalType(Kind.TEXT))
KEYED = TableSchema("public.t", (ID, NAME), ("id",))
SQL = SnowflakeSql("DB", "shop")


def statements(plan: MergePlan, sql: SnowflakeSql = SQL) -> list[str]:
    """With short aliases."""
    texts = (statement.text for statement in merge_statements(sql, "T", "S", plan))
    return [text.replace(TARGET_ALIAS, "t").replace(STAGED_ALIAS, "s") for text in texts]


def test_a_keyed_merge() -> None:
    assert statements(MergePlan(KEYED, OnDelete.HARD)) == [
        """DELETE FROM T AS t USING S AS s WHERE s."_CDC_OP" IN ('D') AND t."ID" = s."ID\""""
        """ AND s."_CDC_ORDER" > t."_CDC_ORDER\"""",
        """UPDATE T AS t SET "NA""ME" = s."NA""ME", "_CDC_ORDER" = s."_CDC_ORDER" FROM S AS s"""
        """ WHERE s."_CDC_OP" IN ('U', 'P') AND t."ID" = s."ID" AND s."_CDC_ORDER" > t."_CDC_ORDER\"""",
        """INSERT INTO T ("ID", "NA""ME", "_CDC_ORDER") SELECT s."ID", s."NA""ME", s."_CDC_ORDER" FROM S AS s"""
        """ WHERE s."_CDC_OP" IN ('U', 'P') AND NOT EXISTS (SELECT 1 FROM T AS t WHERE t."ID" = s."ID")""",
    ]


def test_rows_without_a_key_are_compared_by_their_values() -> None:
    delete, insert = statements(MergePlan(TableSchema("public.t", (ID, NAME)), OnDelete.HARD))
    assert delete == (
        """DELETE FROM T AS t USING S AS s WHERE s."_CDC_OP" = 'D'"""
        """ AND EQUAL_NULL(t."ID", s."ID") AND EQUAL_NULL(t."NA""ME", s."NA""ME")"""
    )
    assert insert.startswith('INSERT INTO T ("ID", "NA""ME") SELECT')


def test_documents_are_compared_by_their_texts() -> None:
    schema = TableSchema("public.t", (Column("j", LogicalType(Kind.JSON)),))
    delete, _ = statements(MergePlan(schema, OnDelete.HARD), SnowflakeSql("DB", "S", json=Json.VARIANT))
    assert delete.endswith('EQUAL_NULL(TO_JSON(t."J"), TO_JSON(s."J"))')


@pytest.mark.parametrize(
    ("identifiers", "named"),
    [(Identifiers.UPPER, '"DB"."shop"."ORDER ""LINES"""'), (Identifiers.EXACT, '"DB"."shop"."Order ""lines"""')],
)
def test_names_are_in_capitals_or_as_in_the_source(identifiers: Identifiers, named: str) -> None:
    assert SnowflakeSql("DB", "shop", identifiers).table('Order "lines"') == named


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LogicalType(Kind.INT16), "NUMBER(5,0)"),
        (LogicalType(Kind.DECIMAL, 38, 37), "NUMBER(38,37)"),
        (LogicalType(Kind.DECIMAL, 38, 38), "VARCHAR"),
        (LogicalType(Kind.FLOAT32), "FLOAT"),
        (LogicalType(Kind.TIMESTAMPTZ), "TIMESTAMP_TZ(6)"),
        (LogicalType(Kind.JSON), "VARCHAR"),
    ],
    ids=str,
)
def test_types(kind: LogicalType, name: str) -> None:
    assert SQL.column_type(Column("c", kind), in_key=False) == name


def test_a_document_in_a_key_is_text() -> None:
    sql = SnowflakeSql("DB", "S", json=Json.VARIANT)
    column = Column("j", LogicalType(Kind.JSON))
    assert [sql.column_type(column, in_key) for in_key in (False, True)] == ["VARIANT", "VARCHAR"]


def test_a_document_may_have_a_member_twice() -> None:
    """By default PARSE_JSON refuses such a document, and the whole batch with it."""
    sql, column = SnowflakeSql("DB", "S", json=Json.VARIANT), Column("j", LogicalType(Kind.JSON))
    assert sql.value_of("x", column, in_key=False) == "PARSE_JSON(x, 'd')"
    assert sql.literal('{"a": 1, "a": 2}', column) == """PARSE_JSON('{"a": 1, "a": 2}', 'd')"""


@pytest.mark.parametrize(
    ("kind", "canonical", "text"),
    [
        (Kind.TEXT, "it's a \\", r"'it''s a \\'::VARCHAR"),
        (Kind.BYTES, b64encode(b"\x00\xff").decode(), "TO_BINARY('00ff', 'HEX')"),
        (Kind.BOOLEAN, True, "'1'::BOOLEAN"),
        (Kind.INT32, 5, "'5'::NUMBER(10,0)"),
        (Kind.FLOAT32, 0.1, "'0.1'::FLOAT"),
        (Kind.DATE, None, "NULL::DATE"),
    ],
)
def test_literals(kind: Kind, canonical: Any, text: str) -> None:
    assert SQL.literal(canonical, Column("c", LogicalType(kind))) == text


def test_a_copy_is_clustered_on_demand_and_staged_rows_are_transient() -> None:
    assert SQL.layout(KEYED, ()) == ""
    (made,) = SQL.create_table("o", ['"ID" NUMBER'], "cdc:1", staging=False, layout=SQL.layout(KEYED, ("id", 'na"me')))
    assert made == (
        'CREATE TABLE IF NOT EXISTS "DB"."shop"."O" ("ID" NUMBER) CLUSTER BY ("ID", "NA""ME")'
        " DEFAULT_DDL_COLLATION = '' COMMENT = 'cdc:1'"
    )
    (staged,) = SQL.create_table("o", ['"ID" NUMBER'], "", staging=True)
    assert staged == ('CREATE TRANSIENT TABLE IF NOT EXISTS "DB"."shop"."O" ("ID" NUMBER) DEFAULT_DDL_COLLATION = \'\'')


def test_files_are_loaded_by_name_and_every_text_is_cast() -> None:
    schema = TableSchema(
        "public.t",
        (ID, Column("b", LogicalType(Kind.BYTES)), Column("at", LogicalType(Kind.TIMESTAMPTZ))),
        ("id",),
    )
    folder, columns = internal_folder(SQL, "staged"), ["id", "b", "at", OP, DELETED]
    (one,) = copy_statements(SQL, "staged", schema, columns, folder, ["x.parquet", "it's.parquet"])
    assert one == (
        'COPY INTO "DB"."shop"."STAGED" ("ID", "B", "AT", "_CDC_OP", "_CDC_DELETED") FROM (SELECT'
        " $1:c0::VARCHAR::NUMBER(19,0), TO_BINARY($1:c1::VARCHAR, 'HEX'),"
        " ($1:c2::VARCHAR || '+00:00')::TIMESTAMP_TZ(6), $1:c3::VARCHAR, $1:c4::VARCHAR::BOOLEAN"
        """ FROM @"DB"."shop"."_CDC_STAGE"/STAGED) FILES = ('x.parquet', 'it''s.parquet')"""
        " FILE_FORMAT = (TYPE = PARQUET NULL_IF = ()) ON_ERROR = ABORT_STATEMENT"
    )
    many = copy_statements(SQL, "staged", schema, ["id"], folder, [f"{n}.parquet" for n in range(FILES_AT_ONCE + 1)])
    assert [statement.count(".parquet'") for statement in many] == [FILES_AT_ONCE, 1]


@pytest.mark.parametrize(
    ("name", "full"), [("S3", '"DB"."shop"."S3"'), ("LOADING.PUBLIC.CDC", '"LOADING"."PUBLIC"."CDC"')]
)
def test_an_external_stage_is_named_and_its_bucket_appears_in_no_statement(name: str, full: str) -> None:
    assert external_folder(SQL, name, "_cdc_0_s_1") == f"@{full}/cdc_0_s_1"


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({}, []),
        ({"stage": "s3://lake/x", "stage_name": "S3"}, []),
        ({"stage": "s3://lake/x"}, ["stage_name"]),
        ({"stage_name": "S3"}, ["stage"]),
        ({"stage": "/data", "stage_name": "S3"}, ["stage"]),
    ],
)
def test_a_bucket_and_the_stage_that_refers_to_it_belong_together(options: dict[str, str], keys: list[str]) -> None:
    conflicts = SnowflakeOptions.option_conflicts(Target("snowflake", connection="w", options=options))
    assert [key for key, _, _ in conflicts] == keys


@pytest.mark.parametrize(
    ("stage", "granted"),
    [
        ("", ["USAGE, CREATE TABLE, CREATE VIEW, CREATE STAGE ON SCHEMA"]),
        ("S3", ["USAGE, CREATE TABLE, CREATE VIEW ON SCHEMA", 'USAGE ON STAGE "DB"."shop"."S3"']),
        ("LOADING.PUBLIC.CDC", ['USAGE ON SCHEMA "LOADING"."PUBLIC"', 'USAGE ON STAGE "LOADING"."PUBLIC"."CDC"']),
    ],
)
def test_the_grants_of_a_role_as_statements(stage: str, granted: list[str]) -> None:
    statements = grant_statements(SnowflakeOptions("DB", "shop", stage_name=stage), "load er", "WH")
    assert statements.count("GRANT ") == statements.count(' TO ROLE "load er";') > 0
    assert statements.startswith('GRANT USAGE, OPERATE ON WAREHOUSE WH TO ROLE "load er"; GRANT USAGE ON DATABASE "DB"')
    assert all(f"GRANT {privilege}" in statements for privilege in granted)


def test_a_session_without_role_and_warehouse_needs_no_grant_on_a_warehouse() -> None:
    assert grant_statements(SnowflakeOptions("DB", "S"), "", "").startswith(
        'GRANT USAGE ON DATABASE "DB" TO ROLE PUBLIC;'
    )


def connection(password: str = "", **extra: Any) -> ConnectionInfo:
    return ConnectionInfo("warehouse", "", None, "cdc", password, extra={"account": "org-one", **extra})


def private_key(password: bytes) -> str:
    encryption = serialization.BestAvailableEncryption(password)
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


def test_a_login_by_password() -> None:
    parameters = login(connection("secret", role="LOADER", warehouse="WH", session_parameters={"x": 1}))
    assert parameters == {
        "account": "org-one",
        "user": "cdc",
        "password": "secret",
        "role": "LOADER",
        "warehouse": "WH",
    }


@pytest.mark.parametrize("form", ["text", "base64", "file"])
def test_a_login_by_key(form: str, tmp_path: Path) -> None:
    """The password of the connection decrypts the key."""
    pem = private_key(b"secret")
    (tmp_path / "key.p8").write_text(pem)
    extra = {
        "text": {"private_key_content": pem},
        "base64": {"private_key_content": b64encode(pem.encode()).decode()},
        "file": {"private_key_file": str(tmp_path / "key.p8")},
    }[form]
    parameters = login(connection("secret", **extra))
    assert parameters["authenticator"] == "SNOWFLAKE_JWT" and "password" not in parameters
    assert serialization.load_der_private_key(parameters["private_key"], None)


def test_a_login_by_token() -> None:
    parameters = login(connection(authenticator="oauth", token="t"))
    assert parameters == {"account": "org-one", "user": "cdc", "authenticator": "oauth", "token": "t"}


@pytest.mark.parametrize(
    "extra",
    [
        {"authenticator": "externalbrowser"},
        {"authenticator": "https://elsewhere.example"},
        {"token_file_path": "/etc/passwd"},
        {"private_key_file": "../key"},
        {"connection_diag_log_path": "/tmp/x"},
    ],
    ids=str,
)
def test_options_that_need_a_person_or_another_server_or_read_files_are_refused(extra: dict[str, str]) -> None:
    with pytest.raises(CheckFailed) as refused:
        login(connection(**extra))
    assert refused.value.problems[0].code == "CON040"


def test_an_unencrypted_connection_is_reported() -> None:
    assert [problem.code for problem in tls_warnings(connection(protocol="http"))] == ["CON041"]
    assert tls_warnings(connection()) == []


def test_names_that_are_equal_in_capitals_are_found() -> None:
    columns = tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("straße", "STRASSE", "v"))
    task = TableTask("public.t", "t", TableSchema("public.t", columns), TableRule("public.t"), "", TableState.PENDING)
    (problem,) = limit_problems(SnowflakeServer.limits, SQL, task)
    assert (problem.code, problem.columns) == ("TGT014", ("STRASSE",))
