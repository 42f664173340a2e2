"""Statements on polled tables, and the outcome for a copy of their rows."""

from __future__ import annotations

from tests.mariadb import series
from tests.spark.pipelines.schema_changes.statements import RUN, SAME, SAME_OR_STOPPED, STOPPED, Case, alter, numbered

POSTGRES_TABLE = (
    "CREATE TYPE {t}_mood AS ENUM ('new', 'open', 'done')",
    "CREATE TABLE {t} (id int PRIMARY KEY, updated_at timestamptz NOT NULL DEFAULT clock_timestamp(), a int,"
    " b int NOT NULL DEFAULT 1, v text, w varchar(20), c char(10), m {t}_mood, j json, i inet,"
    " g int GENERATED ALWAYS AS (id * 2) STORED, l text)",
    "INSERT INTO {t} SELECT k, now() - interval '1 hour', k * 10, k * 100, 'v' || k, 'w' || k, 'c' || k, 'open',"
    " json_build_object('b', k, 'a', 1), ('10.0.0.' || k)::inet FROM generate_series(1, 3) k",
)
POSTGRES_PARTITIONS = (
    "CREATE TABLE {t} (id int PRIMARY KEY, updated_at timestamptz NOT NULL DEFAULT clock_timestamp(), a int)"
    " PARTITION BY RANGE (id)",
    "CREATE TABLE {t}_low PARTITION OF {t} FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE {t}_mid PARTITION OF {t} FOR VALUES FROM (10) TO (20)",
    "INSERT INTO {t} SELECT k, now() - interval '1 hour', k * 10 FROM generate_series(8, 12) k",
)
POSTGRES_ROWS = (
    "INSERT INTO {t} (id, a) VALUES (4, 40)",
    "UPDATE {t} SET a = a + 1, updated_at = clock_timestamp() WHERE id = 1",
)
MARIADB_TABLE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, updated_at timestamp(6) NOT NULL DEFAULT current_timestamp(6), a int,"
    " b int NOT NULL DEFAULT 1, v varchar(20), w text, m enum('new', 'open', 'done'), n decimal(10,2), at datetime(6),"
    " bits varbinary(9), g int AS (id * 2) STORED, l varchar(20))",
    "INSERT INTO {t} (id, updated_at, a, b, v, w, m, n, at, bits) SELECT seq, now(6) - INTERVAL 1 HOUR, seq * 10,"
    " seq * 100, concat('v', seq), concat('w', seq), 'open', seq / 7, '2026-01-02 03:04:05.5' + INTERVAL seq DAY, 'x'"
    f" FROM {series(3)}",
)
MARIADB_ROWS = (
    "INSERT INTO {t} (id, a) VALUES (4, 40)",
    "UPDATE {t} SET a = a + 1, updated_at = now(6) WHERE id = 1",
)
LAX, STRICT = "SET sql_mode = ''", "SET sql_mode = DEFAULT"


def of_postgres(name: str, outcome: str, *statements: str) -> Case:
    return Case(name, statements, POSTGRES_TABLE, POSTGRES_ROWS, outcome)


def parts(name: str, outcome: str, *statements: str) -> Case:
    return Case(name, statements, POSTGRES_PARTITIONS, POSTGRES_ROWS, outcome)


def of_mariadb(name: str, outcome: str, *statements: str) -> Case:
    return Case(name, statements, MARIADB_TABLE, MARIADB_ROWS, outcome)


ATTACH = "ALTER TABLE {t} ATTACH PARTITION {t}_top FOR VALUES FROM (20) TO (30)"

POSTGRES_CASES = numbered(
    [
        of_postgres("swapped", STOPPED, *alter("RENAME a TO x", "RENAME b TO a", "RENAME x TO b")),
        of_postgres("renamed, and a new one under the name", STOPPED, *alter("RENAME v TO old_v", "ADD v text")),
        of_postgres("renamed", STOPPED, *alter("RENAME v TO v2")),
        of_postgres("renamed and back", SAME, *alter("RENAME v TO v2", "RENAME v2 TO v")),
        of_postgres("dropped", SAME, *alter("DROP v")),
        of_postgres("dropped and added", STOPPED, *alter("DROP v", "ADD v text")),
        of_postgres("the last dropped and added", STOPPED, *alter("DROP l", "ADD l text DEFAULT 'new'")),
        of_postgres("dropped and added with a default", STOPPED, *alter("DROP b", "ADD b int DEFAULT 7")),
        of_postgres("dropped, a run, added", SAME_OR_STOPPED, *alter("DROP b"), RUN, *alter("ADD b int DEFAULT 7")),
        of_postgres("added", SAME, *alter("ADD z int")),
        of_postgres("added with a constant", STOPPED, *alter("ADD z int DEFAULT 5")),
        of_postgres("added with a value per row", STOPPED, *alter("ADD z float DEFAULT random()")),
        of_postgres("added, then a default", SAME, *alter("ADD z int", "ALTER z SET DEFAULT 6")),
        of_postgres(
            "added, filled with timestamps", SAME, *alter("ADD z int"), "UPDATE {t} SET z = 1, updated_at = now()"
        ),
        of_postgres("added and generated", STOPPED, *alter("ADD z int GENERATED ALWAYS AS (a + 1) STORED")),
        of_postgres("generated, and then not", SAME, *alter("ALTER g DROP EXPRESSION")),
        of_postgres("other values", STOPPED, *alter("ALTER a TYPE int USING a + 1")),
        of_postgres("int to bigint", STOPPED, *alter("ALTER a TYPE bigint")),
        of_postgres("char to text", STOPPED, *alter("ALTER c TYPE text")),
        of_postgres("inet to text", STOPPED, *alter("ALTER i TYPE text")),
        of_postgres("json to jsonb", STOPPED, *alter("ALTER j TYPE jsonb")),
        of_postgres("varchar longer", SAME, *alter("ALTER w TYPE varchar(30)")),
        of_postgres("varchar to text", SAME, *alter("ALTER w TYPE text")),
        of_postgres("varchar cut", STOPPED, *alter("ALTER w TYPE varchar(1) USING left(w, 1)")),
        of_postgres("a label renamed", STOPPED, "ALTER TYPE {t}_mood RENAME VALUE 'open' TO 'opened'"),
        of_postgres("a new label", SAME, "ALTER TYPE {t}_mood ADD VALUE 'late' BEFORE 'open'"),
        of_postgres("NOT NULL and defaults", SAME, *alter("ALTER a SET NOT NULL", "ALTER b SET DEFAULT 9")),
        of_postgres("index and comment", SAME, "CREATE INDEX ON {t} (v)", "COMMENT ON COLUMN {t}.v IS 'text'"),
        of_postgres("vacuum full", SAME, "VACUUM FULL {t}"),
        of_postgres(
            "another table of the same name",
            STOPPED,
            *alter("RENAME TO {t}_old"),
            "CREATE TABLE {t} (LIKE {t}_old INCLUDING ALL)",
            "INSERT INTO {t} SELECT id, updated_at, a + 1, b, v, w, c, m, j, i FROM {t}_old",
        ),
        parts("a new partition", SAME, "CREATE TABLE {t}_top PARTITION OF {t} FOR VALUES FROM (20) TO (30)"),
        parts(
            "a partition with old rows",
            STOPPED,
            "CREATE TABLE {t}_top (LIKE {t})",
            "INSERT INTO {t}_top VALUES (21, now() - interval '1 hour', 5)",
            ATTACH,
        ),
        parts(
            "a partition with young rows",
            SAME,
            "CREATE TABLE {t}_top (LIKE {t})",
            "INSERT INTO {t}_top VALUES (21, now(), 5)",
            ATTACH,
        ),
        parts(
            "a partition leaves, changes and returns",
            STOPPED,
            "ALTER TABLE {t} DETACH PARTITION {t}_mid",
            "UPDATE {t}_mid SET a = 0",
            "ALTER TABLE {t} ATTACH PARTITION {t}_mid FOR VALUES FROM (10) TO (20)",
        ),
    ]
)

MARIADB_CASES = numbered(
    [
        of_mariadb("swapped", STOPPED, *alter("RENAME COLUMN a TO b, RENAME COLUMN b TO a")),
        of_mariadb("renamed, and a new one", STOPPED, *alter("RENAME COLUMN v TO old_v", "ADD v varchar(20)")),
        of_mariadb("the last renamed, and a new one", STOPPED, *alter("RENAME COLUMN at TO o", "ADD at datetime(6)")),
        of_mariadb("renamed", STOPPED, *alter("CHANGE COLUMN v v2 varchar(20)")),
        of_mariadb("dropped", SAME, *alter("DROP v")),
        of_mariadb("dropped and added", STOPPED, *alter("DROP v", "ADD v varchar(20)")),
        of_mariadb("dropped and added with a default", STOPPED, *alter("DROP b", "ADD b int DEFAULT 7")),
        of_mariadb("added", SAME, *alter("ADD z int")),
        of_mariadb("added in the midst", SAME, *alter("ADD z int AFTER id")),
        of_mariadb("added with a constant", STOPPED, *alter("ADD z int DEFAULT 5")),
        of_mariadb("added with a value per row", STOPPED, *alter("ADD z double DEFAULT (rand())")),
        of_mariadb("added and generated", STOPPED, *alter("ADD z int AS (a + 1) STORED")),
        of_mariadb("another expression", STOPPED, *alter("MODIFY g int AS (id * 3) STORED")),
        of_mariadb("columns change places", STOPPED, *alter("MODIFY a int AFTER w")),
        of_mariadb("int to bigint", STOPPED, *alter("MODIFY a bigint")),
        of_mariadb("int to mediumint", STOPPED, *alter("MODIFY a mediumint")),
        of_mariadb("without a sign", STOPPED, *alter("MODIFY a int unsigned")),
        of_mariadb("int to text", STOPPED, *alter("MODIFY a varchar(20)")),
        of_mariadb("varchar longer", SAME, *alter("MODIFY v varchar(30)")),
        of_mariadb("varchar cut", STOPPED, LAX, *alter("MODIFY v varchar(1)"), STRICT),
        of_mariadb("text to a larger one", SAME, *alter("MODIFY w mediumtext")),
        of_mariadb("fewer digits of a second", STOPPED, *alter("MODIFY at datetime")),
        of_mariadb("fewer decimals", STOPPED, *alter("MODIFY n decimal(10,1)")),
        of_mariadb("more digits", STOPPED, *alter("MODIFY n decimal(12,2)")),
        of_mariadb("a new member", SAME, *alter("MODIFY m enum('late', 'new', 'open', 'done')")),
        of_mariadb("a member less", STOPPED, LAX, *alter("MODIFY m enum('new', 'done')"), STRICT),
        of_mariadb("another character set", STOPPED, *alter("MODIFY v varchar(20) CHARACTER SET latin1")),
        of_mariadb("NOT NULL", SAME, *alter("MODIFY a int NOT NULL")),
        of_mariadb("index, default and comment", SAME, *alter("ADD INDEX (v)", "ALTER b SET DEFAULT 9", "COMMENT 'x'")),
        of_mariadb("rebuilt", SAME, *alter("FORCE", "ENGINE = InnoDB"), "OPTIMIZE TABLE {t}"),
    ]
)
