"""The exact SQL for target databases."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS, TARGET_ALIAS, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.merge_sql import Effect, merge_statements
from airflow_cdc_provider.targets.database.names import comment, identity_in, staging_table
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql

ID = Column("id", LogicalType(Kind.INT64), nullable=False)
NAME = Column('na"me', LogicalType(Kind.TEXT))
KEYED = TableSchema("public.t", (ID, NAME), ("id",))
POSTGRES, MYSQL = PostgresSql("shop"), MysqlSql("shop")


def statements(sql: Sql, plan: MergePlan) -> list[tuple[Effect, str]]:
    """With short aliases."""
    texts = ((one.effect, one.text) for one in merge_statements(sql, "T", "S", plan))
    return [(effect, text.replace(TARGET_ALIAS, "t").replace(STAGED_ALIAS, "s")) for effect, text in texts]


def test_a_keyed_merge_in_postgres() -> None:
    assert statements(POSTGRES, MergePlan(KEYED, OnDelete.HARD)) == [
        (
            Effect.DELETED,
            "DELETE FROM T AS t USING S AS s"
            """ WHERE s."_cdc_op" IN ('D') AND t."id" = s."id" AND s."_cdc_order" > t."_cdc_order\"""",
        ),
        (
            Effect.UPDATED,
            """UPDATE T AS t SET "na""me" = s."na""me", "_cdc_order" = s."_cdc_order" FROM S AS s"""
            """ WHERE s."_cdc_op" IN ('U', 'P') AND t."id" = s."id" AND s."_cdc_order" > t."_cdc_order\"""",
        ),
        (
            Effect.INSERTED,
            """INSERT INTO T ("id", "na""me", "_cdc_order") SELECT s."id", s."na""me", s."_cdc_order" FROM S AS s"""
            """ WHERE s."_cdc_op" IN ('U', 'P') AND NOT EXISTS (SELECT 1 FROM T AS t WHERE t."id" = s."id")""",
        ),
    ]


def test_a_late_truncate_leaves_rows_of_later_changes() -> None:
    plan = MergePlan(KEYED, OnDelete.SOFT, truncated=True, truncated_at="0a")
    assert [
        text for effect, text in statements(POSTGRES, plan) if "NOT EXISTS" in text and effect is Effect.UPDATED
    ] == [
        """UPDATE T AS t SET "_cdc_deleted" = TRUE WHERE NOT t."_cdc_deleted" AND"""
        """ coalesce(t."_cdc_order", '') <= '0a' AND NOT EXISTS (SELECT 1 FROM S AS s WHERE t."id" = s."id")"""
    ]


def test_a_soft_partial_merge_in_mysql_clears_rows_that_are_inserted_again_and_flags_before_it_updates() -> None:
    effects = [effect for effect, _ in statements(MYSQL, MergePlan(KEYED, OnDelete.SOFT, partial=True))]
    assert effects == [Effect.FORGET, Effect.REFUSE, Effect.REFUSE, Effect.UPDATED, Effect.UPDATED, Effect.INSERTED]
    texts = [text for _, text in statements(MYSQL, MergePlan(KEYED, OnDelete.SOFT, partial=True))]
    assert texts[0] == (
        "DELETE t FROM T AS t JOIN S AS s ON s.`_cdc_op` IN ('P') AND t.`id` = s.`id` AND s.`_cdc_known` IS NOT NULL"
        " AND t.`_cdc_deleted` AND s.`_cdc_order` > t.`_cdc_order`"
    )
    assert texts[3] == (
        "UPDATE T AS t JOIN S AS s ON s.`_cdc_op` IN ('D') AND t.`id` = s.`id` AND s.`_cdc_order` > t.`_cdc_order`"
        " SET t.`na\"me` = CASE WHEN s.`_cdc_known` IS NULL OR substr(s.`_cdc_known`, 2, 1) = '1'"
        ' THEN s.`na"me` ELSE t.`na"me` END, t.`_cdc_deleted` = TRUE, t.`_cdc_order` = s.`_cdc_order`'
    )


def test_a_repair_inserts_deleted_rows_that_the_target_lost() -> None:
    plan = MergePlan(KEYED, OnDelete.SOFT, partial=True, not_older=True)
    effect, text = statements(MYSQL, plan)[-1]
    assert effect is Effect.INSERTED and "s.`_cdc_order`, TRUE FROM S" in text
    assert "IN ('D') AND s.`_cdc_known` IS NULL AND NOT EXISTS" in text


def test_a_truncate_removes_rows_without_a_staged_row_and_all_rows_of_a_keyless_table() -> None:
    keyed = [text for _, text in statements(MYSQL, MergePlan(KEYED, OnDelete.HARD, truncated=True))]
    assert "DELETE t FROM T AS t WHERE NOT EXISTS (SELECT 1 FROM S AS s WHERE t.`id` = s.`id`)" in keyed
    keyless = TableSchema("public.t", (ID, NAME))
    every_row = (Effect.DELETED, "DELETE FROM T AS t WHERE TRUE")
    assert every_row in statements(POSTGRES, MergePlan(keyless, OnDelete.HARD, truncated=True))


def test_rows_without_key_are_joined_by_a_text_that_is_computed_once() -> None:
    plan = MergePlan(TableSchema("public.t", (ID, Column("f", LogicalType(Kind.FLOAT64)))), OnDelete.HARD)
    rows = "COALESCE(HEX(CONCAT(t.`id`)), '-'), COALESCE(HEX(CONCAT(t.`f`)), '-')"
    assert statements(MYSQL, plan)[0][1] == (
        "DELETE t FROM T AS t JOIN S AS s ON s.`_cdc_op` = 'D'"
        f" AND s.`_cdc_row` = CONVERT(SHA2(CONCAT_WS(',', {rows}), 256) USING ascii)"
    )
    assert """s."_cdc_row" = ROW(t."id", t."f")::text""" in statements(POSTGRES, plan)[0][1]


def test_a_nullable_key_is_compared_so_that_null_equals_null() -> None:
    schema = TableSchema("public.t", (Column("n", LogicalType(Kind.INT32)),), ("n",))
    assert (
        '(t."n" = s."n" OR (t."n" IS NULL AND s."n" IS NULL))'
        in statements(POSTGRES, MergePlan(schema, OnDelete.HARD))[0][1]
    )
    assert "t.`n` <=> s.`n`" in statements(MYSQL, MergePlan(schema, OnDelete.HARD))[0][1]


def test_added_columns_are_filled_before_anything_else() -> None:
    added = Column("n", LogicalType(Kind.BYTES), initial='"AP8="')
    plan = MergePlan(TableSchema("public.t", (ID, added), ("id",)), OnDelete.HARD, added=(added,))
    assert statements(POSTGRES, plan)[0] == (Effect.FILL, """UPDATE T SET "n" = decode('AP8=', 'base64') WHERE TRUE""")
    assert statements(MYSQL, plan)[0] == (Effect.FILL, "UPDATE T SET `n` = X'00ff' WHERE TRUE")


@pytest.mark.parametrize(
    ("kind", "in_key", "postgres", "mysql"),
    [
        (LogicalType(Kind.DECIMAL, 12, 2), False, "numeric(12,2)", "DECIMAL(12,2)"),
        (
            LogicalType(Kind.DECIMAL, 38, 38),
            False,
            "numeric(38,38)",
            "VARCHAR(80) CHARACTER SET ascii COLLATE ascii_bin",
        ),
        (LogicalType(Kind.FLOAT32), False, "real", "DOUBLE"),
        (LogicalType(Kind.JSON), True, "text", "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"),
        (LogicalType(Kind.TIMESTAMPTZ), False, "timestamptz", "DATETIME(6)"),
        (LogicalType(Kind.BYTES), True, "bytea", "VARBINARY(1020)"),
    ],
)
def test_types_of_columns(kind: LogicalType, in_key: bool, postgres: str, mysql: str) -> None:
    column = Column("c", kind)
    assert (POSTGRES.column_type(column, in_key), MYSQL.column_type(column, in_key)) == (postgres, mysql)


def test_floats_are_text_where_the_yaml_requires_it() -> None:
    assert (
        MysqlSql("shop", Floats.TEXT).column_type(Column("c", LogicalType(Kind.FLOAT64)), False).startswith("VARCHAR")
    )


def test_texts_with_quotes_and_backslashes_are_quoted_exactly() -> None:
    text = Column("c", LogicalType(Kind.TEXT))
    assert POSTGRES.literal("it's \\", text) == "E'it''s \\\\'::text"
    assert MYSQL.literal("it's \\", text) == "'it''s \\\\'"


def test_the_identity_of_a_copy_is_kept_in_its_comment_beside_other_text() -> None:
    identity = "0123456789abcdef" * 2
    assert identity_in(f"orders of the shop ({comment(identity)})") == identity
    assert identity_in("orders of the shop") == ""


def test_staging_tables_have_short_unique_names() -> None:
    names = {staging_table(table, kind, "a") for table in ("t", "u" * 100) for kind in ("s", "c")}
    assert len(names) == 4 and max(map(len, names)) <= 63


def test_values_that_a_server_quotes_are_left_out() -> None:
    texts = (
        "1366: Incorrect double value: 'secret' for column `f`",
        "1062: Duplicate entry 'secret' for key 'PRIMARY'",
        '22P02: invalid input syntax for type double precision: "secret"',
    )
    assert [text for text in texts if "secret" in str(errors.value_rejected("here", text, ""))] == []
