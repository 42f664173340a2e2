"""Unlogged changes that the text of an ALTER TABLE implies."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.mysql.alterations import may_change, unlogged_changes
from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.statements import Effect, parse_statement
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

TEXT, INT = LogicalType(Kind.TEXT), LogicalType(Kind.INT32)
COPIED = TableSchema(
    "shop.t",
    (
        Column("id", INT, False, "int(11)"),
        Column("a", INT, True, "int(11)"),
        Column("b", LogicalType(Kind.INT64), True, "int(10) unsigned"),
        Column("v", TEXT, True, "varchar(20)"),
        Column("m", TEXT, True, "enum('it''s','b')"),
        Column("body", TEXT, True, "text"),
        Column("n", LogicalType(Kind.DECIMAL, 10, 2), True, "decimal(10,2)"),
        Column("at", LogicalType(Kind.TIMESTAMP), True, "datetime(3)"),
    ),
    ("id",),
)


def reasons(actions: str, strict: bool = True, verb: str = "ALTER TABLE") -> list[str]:
    statement = parse_statement(Query("shop", f"{verb} `shop`.`t` {actions}"))
    assert statement.effect is Effect.ALTER
    return list(unlogged_changes(statement.clauses, statement.ignoring, strict, COPIED))


@pytest.mark.parametrize(
    "actions",
    [
        "DROP COLUMN v",
        "DROP v, DROP INDEX i",
        "ADD z int",
        "ADD COLUMN IF NOT EXISTS `z z` varchar(9) NULL DEFAULT NULL COMMENT 'a, NOT NULL' AFTER v",
        "ADD (y int, z decimal(9,2), KEY (y))",
        "ADD z int AS (a + 1) STORED NOT NULL",
        "ADD z int CHECK (z IS NOT NULL OR z > DEFAULT(a))",
        "ADD PERIOD FOR p (a, b), ADD VECTOR INDEX (v)",
        "ADD UNIQUE KEY k (a, v(3)), ADD CONSTRAINT c CHECK (a > 0), ADD FOREIGN KEY (a) REFERENCES u (id)",
        "RENAME INDEX i TO j",
        "ALTER COLUMN a SET DEFAULT 5, ALTER v DROP DEFAULT",
        "MODIFY a int",
        "MODIFY A int",
        "MODIFY A bigint",
        "CHANGE COLUMN `a` `z` int",
        "RENAME COLUMN `A` TO z",
        "RENAME COLUMN a TO A",
        "MODIFY COLUMN IF EXISTS a INTEGER(4) NOT NULL DEFAULT 0 FIRST",
        "CHANGE a a INT4 COMMENT 'x'",
        "MODIFY b int unsigned",
        "MODIFY v character varying(21) COLLATE utf8mb4_bin",
        "MODIFY v varchar(20) CHARACTER SET utf8mb4",
        "MODIFY m enum('it''s', 'b', 'c')",
        "MODIFY n numeric(12, 2)",
        "MODIFY at datetime(6)",
        "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ENGINE=InnoDB, COMMENT='RENAME COLUMN a TO b', AUTO_INCREMENT = 5",
        "ORDER BY a, b DESC, id",
        "REORGANIZE PARTITION low, mid INTO (PARTITION one VALUES LESS THAN (20), PARTITION two VALUES LESS THAN (30))",
        "ANALYZE PARTITION low, mid",
        "COMMENT 'x' ROW_FORMAT DYNAMIC, MAX_ROWS 10, `PAGE_COMPRESSED` = 1, DEFAULT CHARSET utf8mb4",
        "ADD CHECK (engine = 'x'), ENGINE 'InnoDB'",
        "MODIFY id int NOT NULL AUTO_INCREMENT",
        "PARTITION BY HASH (id) PARTITIONS 4",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (a)",
        "DROP PRIMARY KEY, ADD CONSTRAINT c PRIMARY KEY (id)",
    ],
)
def test_a_change_that_keeps_every_value_is_accepted(actions: str) -> None:
    assert reasons(actions) == []


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", ["column a was renamed to b", "column b was renamed to a"]),
        ("CHANGE COLUMN `a` `z` varchar(9)", ["column z changed from int(11) to varchar(9)"]),
        ("CHANGE COLUMN `a` `v` int", ["column a was renamed to v"]),
        ("DROP v, ADD v varchar(20)", ["column v was dropped and another one was added"]),
        ("ADD (y int, z int DEFAULT 5)", ["rows older than column z have a value"]),
        ("ADD z int NOT NULL", ["rows older than column z"]),
        ("ADD z varchar(9) DEFAULT (CAST(1 AS CHAR))", ["rows older than column z"]),
        ("ADD z varchar(9) DEFAULT CAST(1 AS CHAR) COMMENT 'AS'", ["rows older than column z"]),
        (
            "ADD z int DEFAULT 5 CHECK (z IS NULL OR z <=> DEFAULT(z) AND b = (SELECT NULL))",
            ["rows older than column z"],
        ),
        ("ADD period int DEFAULT 5", ["rows older than column period"]),
        ("ADD system int DEFAULT 5, ADD vector int DEFAULT 6", ["than column system", "than column vector"]),
        ("ADD z timestamp", ["rows older than column z"]),
        ("ADD z bigint unsigned AUTO_INCREMENT, ADD KEY (z)", ["rows older than column z"]),
        ("MODIFY a smallint", ["column a changed from int(11) to smallint"]),
        ("MODIFY b int", ["column b changed from int(10) unsigned to int"]),
        ("MODIFY a int ZEROFILL", ["column a changed from int(11) to int"]),
        ("MODIFY b int CHECK (b > CAST(1 AS UNSIGNED))", ["column b changed from int(10) unsigned to int"]),
        ("ENGINE = InnoDB ENGINE = BLACKHOLE", ["stores no rows"]),
        ("MODIFY v varchar(19)", ["column v changed from varchar(20) to varchar(19)"]),
        ("MODIFY v varchar(20) CHARACTER SET latin1", ["column v changed"]),
        ("MODIFY m enum('b','it''s')", ["column m changed"]),
        ("MODIFY n decimal(10,1)", ["column n changed from decimal(10,2) to decimal(10,1)"]),
        ("MODIFY at datetime", ["column at changed from datetime(3) to datetime"]),
        ("MODIFY g int", ["column g was a generated column"]),
        ("MODIFY a point", ["column a changed from int(11) to point"]),
        ("CONVERT TO CHARACTER SET latin1", ["texts were converted"]),
        ("ENGINE = BLACKHOLE", ["stores no rows"]),
        ("ENGINE = BLACKHOLE COMMENT = 'x'", ["stores no rows"]),
        ("COMMENT = 'x' ENGINE = BLACKHOLE", ["stores no rows"]),
        ("COMMENT = 'see #12', DROP v, ADD v int", ["column v was dropped and another one was added"]),
        ('COMMENT "-- 5", DROP v, ADD v int', ["column v was dropped and another one was added"]),
        ("NOWAIT MODIFY a smallint", ["column a changed from int(11) to smallint"]),
        ("WAIT 5 MODIFY a smallint", ["column a changed from int(11) to smallint"]),
        ("MODIFY a int AUTO_INCREMENT, ADD UNIQUE (a)", ["column a counts from now on"]),
        ("SCRAMBLE v", ["a clause that is not known: SCRAMBLE v"]),
        ("RENAME COLUMN `A` TO v", ["column A was renamed to v"]),
        ("DROP PRIMARY KEY", ["the table has no primary key from here on"]),
        ("DROP CONSTRAINT `primary`", ["the table has no primary key from here on"]),
        ("DROP INDEX IF EXISTS `PRIMARY`, ADD UNIQUE (id)", ["the table has no primary key from here on"]),
        ("DROP V, ADD V varchar(20)", ["column V was dropped and another one was added"]),
        ("MODIFY A smallint", ["column A changed from int(11) to smallint"]),
    ],
)
def test_a_change_that_may_change_values_is_reported(actions: str, words: list[str]) -> None:
    found = reasons(actions)
    assert len(found) == len(words)
    assert all(one in each for one, each in zip(words, found, strict=True)), found


def test_without_strict_mode_a_changed_type_and_not_null_are_reported() -> None:
    assert reasons("MODIFY a int", strict=False) == []
    assert "truncates values" in reasons("MODIFY a int NOT NULL", strict=False)[0]
    assert "truncates values" in reasons("MODIFY v varchar(30)", strict=False)[0]


@pytest.mark.parametrize(
    "definition",
    [
        "v varchar(20)",
        "v varchar(20) CHARACTER SET latin1",
        "v varchar(20) CHAR SET latin1",
        "v varchar(20) COLLATE latin1_bin",
        "m enum('it''s','b')",
        "body text CHARACTER SET utf8mb4",
    ],
)
def test_without_strict_mode_a_text_that_may_get_a_smaller_character_set_is_reported(definition: str) -> None:
    for action in (f"MODIFY {definition}", f"CHANGE {definition.split()[0]} {definition}"):
        assert len(reasons(action, strict=False)) == 1


@pytest.mark.parametrize(
    "charset", ["CHAR SET latin1", "CHARSET latin1", "ASCII", "BYTE", "COLLATE latin1_swedish_ci", "COLLATE binary"]
)
def test_every_spelling_of_another_character_set_is_reported(charset: str) -> None:
    assert "column v changed" in reasons(f"MODIFY v varchar(20) {charset}")[0]
    assert reasons("MODIFY v varchar(20) COLLATE uca1400_ai_ci COMMENT 'CHARSET latin1'") == []


def test_a_primary_key_that_another_statement_drops_is_reported() -> None:
    statement = parse_statement(Query("shop", "DROP INDEX `PRIMARY` ON t"))
    assert statement.affected(["shop.t"]) == ["shop.t"] and may_change(statement.clauses)
    assert list(unlogged_changes(statement.clauses, False, True, COPIED)) == reasons("DROP PRIMARY KEY")


def test_rows_that_an_alter_ignore_removes_are_reported() -> None:
    assert "removed" in reasons("ADD UNIQUE (v)", verb="ALTER IGNORE TABLE")[0]


def test_a_statement_without_a_column_is_accepted() -> None:
    assert not may_change(parse_statement(Query("shop", "ALTER TABLE t ENGINE=InnoDB, ORDER BY a")).clauses)
    assert may_change(parse_statement(Query("shop", "ALTER TABLE t ENGINE=InnoDB, ADD z int")).clauses)
    assert may_change(parse_statement(Query("shop", "ALTER TABLE t ENGINE=BLACKHOLE")).clauses)
