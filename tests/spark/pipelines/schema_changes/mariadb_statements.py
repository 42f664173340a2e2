"""Statements that MariaDB allows on a table with rows, and the outcome for a copy of these rows."""

from __future__ import annotations

from tests.mariadb import series
from tests.spark.pipelines.schema_changes.statements import RUN, SAME, SAME_OR_STOPPED, STOPPED, Case, alter, numbered

ORDINARY = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int, b int NOT NULL DEFAULT 1, v varchar(20), w text, c char(10),"
    " m enum('new', 'open', 'done'), n decimal(10,2), at datetime(6), day date, big bigint unsigned, f double,"
    " bits varbinary(9), g int AS (id * 2) STORED, l varchar(20) CHARACTER SET latin1)",
    "INSERT INTO {t} (id, a, b, v, w, c, m, n, at, day, big, f, bits, l) SELECT seq, seq * 10, seq * 100,"
    " concat('v', seq), concat('w', seq), concat('c', seq), 'open', seq / 7,"
    " '2026-01-02 03:04:05.5' + INTERVAL seq DAY, '2026-01-02' + INTERVAL seq DAY, seq, seq + 0.5, 'x', 'y'"
    f" FROM {series(3)}",
)
PARTITIONED = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int NOT NULL) PARTITION BY RANGE (id)"
    " (PARTITION low VALUES LESS THAN (10), PARTITION mid VALUES LESS THAN (20))",
    f"INSERT INTO {{t}} SELECT seq, seq * 10 FROM {series(12)} WHERE seq >= 8",
)
MORE_ROWS = ("INSERT INTO {t} (id, a) VALUES (4, 40)", "UPDATE {t} SET a = a + 1 WHERE id = 1")
MORE_PARTITIONED_ROWS = ("INSERT INTO {t} (id, a) VALUES (4, 40)", "UPDATE {t} SET a = a + 1 WHERE id = 8")
LAX = "SET sql_mode = ''"
STRICT = "SET sql_mode = DEFAULT"


def case(name: str, statements: tuple[str, ...], quiet: str, busy: str = "", rows: tuple[str, ...] = MORE_ROWS) -> Case:
    return Case(name, statements, ORDINARY, rows, quiet, busy)


def same(name: str, *statements: str, busy: str = "") -> Case:
    return case(name, statements, SAME, busy)


def stopped(name: str, *statements: str) -> Case:
    return case(name, statements, STOPPED)


def parts(name: str, outcome: str, *statements: str) -> Case:
    return Case(name, statements, PARTITIONED, MORE_PARTITIONED_ROWS, outcome)


CASES = numbered(
    [
        # names
        stopped("two columns swap their names", *alter("RENAME COLUMN a TO b, RENAME COLUMN b TO a")),
        stopped("two columns swap their names by CHANGE", *alter("CHANGE a b int, CHANGE b a int NOT NULL DEFAULT 1")),
        stopped("rename, and a new column under the old name", *alter("RENAME COLUMN v TO old_v", "ADD v varchar(20)")),
        stopped("rename", *alter("CHANGE COLUMN v v2 varchar(20)")),
        case("rename of the key", alter("RENAME COLUMN id TO id2"), STOPPED, rows=()),
        case("rename and back", alter("RENAME COLUMN v TO v2", "RENAME COLUMN v2 TO v"), SAME_OR_STOPPED),
        # columns that go and come
        same("drop", *alter("DROP v")),
        stopped("drop and add again", *alter("DROP COLUMN v", "ADD COLUMN v varchar(20)")),
        stopped("drop and add again in one statement", *alter("DROP v, ADD v varchar(20)")),
        stopped("drop and add again with a default", *alter("DROP b", "ADD b int DEFAULT 7")),
        stopped("drop, rows, add again", *alter("DROP b"), "UPDATE {t} SET a = a + 5", *alter("ADD b int")),
        case("drop, a run, add again", (*alter("DROP v"), RUN, *alter("ADD v varchar(20)")), SAME_OR_STOPPED),
        case(
            "drop, rows, a run, add again",
            (*alter("DROP v"), "UPDATE {t} SET a = a + 5", RUN, *alter("ADD v varchar(20)")),
            SAME_OR_STOPPED,
        ),
        same("add", *alter("ADD z int")),
        same("add some", *alter("ADD (y int, z varchar(9) DEFAULT NULL)")),
        same("add in the midst", *alter("ADD COLUMN IF NOT EXISTS z int AFTER id")),
        stopped("add with a constant", *alter("ADD z int DEFAULT 5")),
        case("add NOT NULL", alter("ADD z int NOT NULL"), STOPPED, rows=MORE_ROWS[1:]),
        stopped("add with a value per row", *alter("ADD z double DEFAULT (rand())")),
        stopped("add a timestamp", *alter("ADD z timestamp NOT NULL DEFAULT current_timestamp")),
        stopped("add a column that counts", *alter("ADD z int AUTO_INCREMENT UNIQUE")),
        same("add a generated column", *alter("ADD z int AS (a + 1) STORED")),
        stopped("a generated column becomes an ordinary one", *alter("MODIFY g int")),
        same("columns change places", *alter("MODIFY a int AFTER w", "MODIFY v varchar(20) FIRST")),
        stopped(
            "a column that counts from now on",
            "UPDATE {t} SET a = 0 WHERE id = 2",
            *alter("MODIFY a int AUTO_INCREMENT, ADD UNIQUE (a)"),
        ),
        stopped("a column for another", *alter("DROP v, ADD z int DEFAULT 3")),
        # types
        stopped("int to bigint", *alter("MODIFY a bigint")),
        same("int as integer", *alter("MODIFY a integer")),
        same("int with another width", *alter("MODIFY a int(4)")),
        stopped("int to text", *alter("MODIFY a varchar(20)")),
        stopped("without a sign", *alter("MODIFY a int unsigned")),
        same("varchar longer", *alter("MODIFY v varchar(30)")),
        stopped("varchar shorter", *alter("MODIFY v varchar(4)")),
        stopped("varchar shorter, and cut", LAX, *alter("MODIFY v varchar(1)"), STRICT),
        stopped("varchar to text", *alter("MODIFY v text")),
        same("text to a larger one", *alter("MODIFY w mediumtext")),
        stopped("text to a smaller one", *alter("MODIFY w tinytext")),
        stopped("decimal with fewer decimals", *alter("MODIFY n decimal(10,1)")),
        stopped("decimal with more digits", *alter("MODIFY n decimal(12,2)")),
        stopped("fewer digits of a second", *alter("MODIFY at datetime")),
        stopped("datetime to date", *alter("MODIFY at date")),
        stopped("date to datetime", *alter("MODIFY day datetime")),
        stopped("double to float", *alter("MODIFY f float")),
        same("a new member behind", *alter("MODIFY m enum('new', 'open', 'done', 'late')")),
        stopped("a new member before", *alter("MODIFY m enum('late', 'new', 'open', 'done')")),
        stopped("a member less", *alter("MODIFY m enum('open', 'done')")),
        stopped("a member less, and values are lost", LAX, *alter("MODIFY m enum('new', 'done')"), STRICT),
        stopped("members change places", *alter("MODIFY m enum('done', 'open', 'new')")),
        stopped("enum to varchar", *alter("MODIFY m varchar(9)")),
        stopped("to another character set", *alter("MODIFY v varchar(20) CHARACTER SET latin1")),
        same("to the widest character set", *alter("MODIFY l varchar(20) CHARACTER SET utf8mb4")),
        same("the table to the widest character set", *alter("CONVERT TO CHARACTER SET utf8mb4")),
        stopped("the table to another character set", *alter("CONVERT TO CHARACTER SET latin1")),
        same("binary longer", *alter("MODIFY bits varbinary(12)")),
        # settings of columns
        same("NOT NULL", *alter("MODIFY a int NOT NULL")),
        case(
            "NOT NULL where a value is NULL",
            ("UPDATE {t} SET w = NULL", LAX, *alter("MODIFY w text NOT NULL"), STRICT),
            STOPPED,
            rows=MORE_ROWS[1:],
        ),
        same("no NOT NULL", *alter("MODIFY b int DEFAULT 1")),
        same("default", *alter("ALTER b SET DEFAULT 9", "ALTER COLUMN b DROP DEFAULT", "ALTER b SET DEFAULT 1")),
        same("comment", *alter("MODIFY v varchar(20) COMMENT 'text, more (text)'")),
        same("invisible", *alter("MODIFY v varchar(20) INVISIBLE")),
        # constraints and indexes
        same("check", *alter("ADD CONSTRAINT positive CHECK (a > 0)", "DROP CONSTRAINT positive")),
        same(
            "index",
            *alter("ADD INDEX by_v (v), ADD UNIQUE KEY by_a (a)", "RENAME INDEX by_v TO of_v", "DROP INDEX of_v"),
        ),
        same("index by a statement of its own", "CREATE INDEX by_v ON {t} (v)", "DROP INDEX by_v ON {t}"),
        stopped("equal rows are removed", "UPDATE {t} SET v = 'same'", "ALTER IGNORE TABLE {t} ADD UNIQUE (v)"),
        case("another primary key", alter("DROP PRIMARY KEY, ADD PRIMARY KEY (b)"), SAME, busy=STOPPED),
        # the table
        same("rebuilt", *alter("FORCE", "ENGINE = InnoDB", "ORDER BY a"), "OPTIMIZE TABLE {t}", "ANALYZE TABLE {t}"),
        same("another engine", *alter("ENGINE = Aria", "ENGINE = InnoDB")),
        same("settings", *alter("COMMENT = 'DROP COLUMN v', ROW_FORMAT = DYNAMIC, AUTO_INCREMENT = 100")),
        stopped("system versioning", *alter("ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING")),
        stopped("settings, and a column for another", *alter("COMMENT = 'see #12', DROP v, ADD v varchar(20)")),
        stopped("drop and add again without waiting", *alter("NOWAIT DROP v", "WAIT 5 ADD v varchar(20)")),
        stopped(
            "drop and add again with a setting",
            "SET STATEMENT lock_wait_timeout = 50 FOR ALTER TABLE {t} DROP v, ADD v varchar(20)",
        ),
        stopped("a column for another in a comment", "/*!50001 ALTER TABLE {t} DROP v, ADD v varchar(20) */"),
        same("truncate", "TRUNCATE TABLE {t}"),
        same("truncate after comments", "/*My application*/ # the second\n--\nTRUNCATE TABLE {t}"),
        same("truncate in a comment", "/*!50001 TRUNCATE TABLE {t} */"),
        same("truncate with a setting", "SET STATEMENT lock_wait_timeout = 50 FOR TRUNCATE TABLE {t}"),
        same("truncate and rows", "TRUNCATE {t}", "INSERT INTO {t} (id, a) VALUES (1, 5)"),
        stopped("another table of the same name", "RENAME TABLE {t} TO {t}_old", "CREATE TABLE {t} LIKE {t}_old"),
        stopped("replaced", "CREATE OR REPLACE TABLE {t} (id int PRIMARY KEY, a int)"),
        stopped("renamed and back", *alter("RENAME TO {t}_old"), "RENAME TABLE {t}_old TO {t}"),
        # partitions
        parts("a new partition", SAME, "ALTER TABLE {t} ADD PARTITION (PARTITION top VALUES LESS THAN (30))"),
        parts("a partition is dropped", STOPPED, "ALTER TABLE {t} DROP PARTITION mid"),
        parts("a partition becomes a table", STOPPED, "ALTER TABLE {t} CONVERT PARTITION mid TO TABLE {t}_mid"),
        parts("a partition is truncated", STOPPED, "ALTER TABLE {t} TRUNCATE PARTITION mid"),
        parts(
            "a partition changes places with a table",
            STOPPED,
            "CREATE TABLE {t}_other (id int PRIMARY KEY, a int NOT NULL)",
            "INSERT INTO {t}_other VALUES (15, 1)",
            "ALTER TABLE {t} EXCHANGE PARTITION mid WITH TABLE {t}_other",
        ),
        parts(
            "partitions are reorganised",
            SAME,
            "ALTER TABLE {t} REORGANIZE PARTITION low, mid INTO (PARTITION one VALUES LESS THAN (20))",
        ),
        parts("no partitions any more", SAME, "ALTER TABLE {t} REMOVE PARTITIONING"),
        parts("a partition is rebuilt", SAME, "ALTER TABLE {t} REBUILD PARTITION mid"),
    ]
)
