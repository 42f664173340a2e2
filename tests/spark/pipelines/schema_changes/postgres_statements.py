"""Statements that PostgreSQL allows on a table with rows, and the outcome for a copy of these rows."""

from __future__ import annotations

from dataclasses import replace

from tests.spark.pipelines.schema_changes.statements import SAME, SAME_OR_STOPPED, STOPPED, Case, alter, numbered

TYPES = (
    "CREATE TYPE {t}_mood AS ENUM ('new', 'open', 'done')",
    "CREATE TYPE {t}_pair AS (x int, y text)",
    "CREATE DOMAIN {t}_code AS varchar(9)",
)
ORDINARY = (
    *TYPES,
    "CREATE TABLE {t} (id int PRIMARY KEY, a int, b int NOT NULL DEFAULT 1, v text, w varchar(20), c char(10),"
    " m {t}_mood, p {t}_pair, d {t}_code, n numeric(10,2), big numeric(50,2), j json, i inet, s interval,"
    " ms {t}_mood[], g int GENERATED ALWAYS AS (id * 2) STORED)",
    "INSERT INTO {t} SELECT k, k * 10, k * 100, 'v' || k, 'w' || k, 'c' || k, 'open', ROW(k, 'y')::{t}_pair, 'd' || k,"
    " k / 7.0, k / 7.0, json_build_object('b', k, 'a', 1), ('10.0.0.' || k)::inet, "
    " make_interval(days => k, hours => k), ARRAY['new', 'done']::{t}_mood[] FROM generate_series(1, 3) k",
)
PARTITIONED = (
    "CREATE TABLE {t} (id int, a int NOT NULL, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
    "CREATE TABLE {t}_low PARTITION OF {t} FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE {t}_mid PARTITION OF {t} FOR VALUES FROM (10) TO (20)",
    "INSERT INTO {t} SELECT k, k * 10 FROM generate_series(8, 12) k",
)
MORE_ROWS = ("INSERT INTO {t} (id, a) VALUES (4, 40)", "UPDATE {t} SET a = a + 1 WHERE id = 1")
MORE_PARTITIONED_ROWS = ("INSERT INTO {t} (id, a) VALUES (4, 40)", "UPDATE {t} SET a = a + 1 WHERE id = 8")


def case(name: str, statements: tuple[str, ...], quiet: str, busy: str = "", rows: tuple[str, ...] = MORE_ROWS) -> Case:
    return Case(name, statements, ORDINARY, rows, quiet, busy)


def same(name: str, *statements: str, busy: str = "", since: int = 0) -> Case:
    return replace(case(name, statements, SAME, busy), since=since)


def stopped(name: str, *statements: str) -> Case:
    return case(name, statements, STOPPED)


def parts(name: str, outcome: str, *statements: str) -> Case:
    return Case(name, statements, PARTITIONED, MORE_PARTITIONED_ROWS, outcome)


REPLACED = "BEGIN; ALTER TABLE {t} RENAME TO {t}_old; CREATE TABLE {t} (LIKE {t}_old INCLUDING ALL); COMMIT"

CASES = numbered(
    [
        # names
        stopped("two columns swap their names", *alter("RENAME a TO x", "RENAME b TO a", "RENAME x TO b")),
        stopped("rename, and a new column under the old name", *alter("RENAME v TO old_v", "ADD v text")),
        stopped("rename", *alter("RENAME v TO v2")),
        case("rename of the key", alter("RENAME id TO id2", "ADD id int"), STOPPED, rows=()),
        same("rename and back", *alter("RENAME v TO v2", "RENAME v2 TO v")),
        # columns that go and come
        same("drop", *alter("DROP v")),
        stopped("drop and add again", *alter("DROP v", "ADD v text")),
        stopped("drop the last and add again", *alter("DROP ms", "ADD ms text")),
        stopped("drop and add again with a default", *alter("DROP b", "ADD b int DEFAULT 7")),
        stopped("drop, rows, add again", *alter("DROP b"), "UPDATE {t} SET a = a + 5", *alter("ADD b int")),
        case("drop, a run, add again", (*alter("DROP v"), "{run}", *alter("ADD v text")), SAME_OR_STOPPED),
        case(
            "drop, a run, add again with a default",
            (*alter("DROP v"), "{run}", *alter("ADD v text DEFAULT 'new'")),
            SAME_OR_STOPPED,
        ),
        case("drop, a run, rename another", (*alter("DROP v"), "{run}", *alter("RENAME w TO v")), SAME_OR_STOPPED),
        same("add", *alter("ADD z int")),
        same("add with a constant", *alter("ADD z int DEFAULT 5")),
        same("add NOT NULL with a constant", *alter("ADD z text NOT NULL DEFAULT 'ä'")),
        same("add with a constant, default changed", *alter("ADD z int DEFAULT 5", "ALTER z SET DEFAULT 6")),
        same("add with a constant, default dropped", *alter("ADD z int DEFAULT 5", "ALTER z DROP DEFAULT")),
        case("add, then a default", alter("ADD z int", "ALTER z SET DEFAULT 6"), SAME_OR_STOPPED),
        stopped("add with a value per row", *alter("ADD z float DEFAULT random()")),
        stopped("add a serial", *alter("ADD z serial")),
        stopped("add an identity", *alter("ADD z int GENERATED ALWAYS AS IDENTITY")),
        same("add a generated column", *alter("ADD z int GENERATED ALWAYS AS (a + 1) STORED")),
        case(
            "add with a constant, rewritten, default dropped",
            (*alter("ADD z int DEFAULT 5"), "VACUUM FULL {t}", *alter("ALTER z DROP DEFAULT")),
            STOPPED,
        ),
        case("add with a constant, rewritten", (*alter("ADD z int DEFAULT 5"), "VACUUM FULL {t}"), SAME_OR_STOPPED),
        stopped("a generated column becomes an ordinary one", *alter("ALTER g DROP EXPRESSION")),
        same("a column for another", *alter("DROP v", "ADD z int DEFAULT 3")),
        # types
        stopped("int to bigint", *alter("ALTER b TYPE bigint")),
        stopped("same type, other values", *alter("ALTER a TYPE int USING a * 2")),
        stopped("same type, other texts", *alter("ALTER v TYPE text USING upper(v)")),
        same("same type, same values", *alter("ALTER v TYPE text USING v || ''")),
        stopped("char to text", *alter("ALTER c TYPE text")),
        stopped("text to char", *alter("ALTER v TYPE char(30)")),
        stopped("char longer", *alter("ALTER c TYPE char(20)")),
        stopped("inet to text", *alter("ALTER i TYPE text")),
        stopped("text to inet", *alter("ALTER v TYPE inet USING '10.0.0.9'")),
        stopped("inet to cidr", *alter("ALTER i TYPE cidr")),
        stopped("interval to text", *alter("ALTER s TYPE text")),
        stopped("json to jsonb", *alter("ALTER j TYPE jsonb")),
        same("varchar longer", *alter("ALTER w TYPE varchar(30)")),
        same("varchar to text", *alter("ALTER w TYPE text")),
        same("text to varchar", *alter("ALTER v TYPE varchar(200)")),
        same("varchar shorter", *alter("ALTER w TYPE varchar(3)")),
        stopped("varchar shorter, and cut", *alter("ALTER w TYPE varchar(1) USING left(w, 1)")),
        same("domain to its base type", *alter("ALTER d TYPE varchar(9)")),
        same("base type to a domain", *alter("ALTER w TYPE {t}_code")),
        stopped("numeric with more digits", *alter("ALTER n TYPE numeric(12,2)")),
        stopped("numeric with fewer decimals", *alter("ALTER n TYPE numeric(10,1)")),
        same("large numeric with more digits", *alter("ALTER big TYPE numeric(60,2)")),
        same("large numeric without limits", *alter("ALTER big TYPE numeric")),
        stopped("enum to text and other values", *alter("ALTER m TYPE text USING m::text || '!'")),
        stopped("rename of an enum label", "ALTER TYPE {t}_mood RENAME VALUE 'open' TO 'opened'"),
        stopped(
            "labels change places",
            *(
                f"ALTER TYPE {{t}}_mood RENAME VALUE '{old}' TO '{new}'"
                for old, new in (("open", "x"), ("done", "open"), ("x", "done"))
            ),
        ),
        same("a new enum label", "ALTER TYPE {t}_mood ADD VALUE 'late' BEFORE 'open'"),
        same("rename of a type", "ALTER TYPE {t}_mood RENAME TO {t}_state"),
        same("rename of a domain", "ALTER DOMAIN {t}_code RENAME TO {t}_codes"),
        same("a domain gets a constraint", "ALTER DOMAIN {t}_code ADD CONSTRAINT short CHECK (length(VALUE) < 9)"),
        stopped("a composite type gets an attribute", "ALTER TYPE {t}_pair ADD ATTRIBUTE z int"),
        stopped("a composite type loses an attribute", "ALTER TYPE {t}_pair DROP ATTRIBUTE x"),
        same("rename of an attribute", "ALTER TYPE {t}_pair RENAME ATTRIBUTE x TO xx"),
        # settings of columns
        same("NOT NULL", *alter("ALTER a SET NOT NULL")),
        same("no NOT NULL", *alter("ALTER b DROP NOT NULL")),
        same("default", *alter("ALTER b SET DEFAULT 9")),
        same("statistics", *alter("ALTER v SET STATISTICS 300", "ALTER v SET (n_distinct = 5)")),
        same("storage", *alter("ALTER v SET STORAGE EXTERNAL", "ALTER v SET COMPRESSION pglz")),
        same(
            "identity",
            *alter(
                "ALTER b DROP DEFAULT",
                "ALTER b ADD GENERATED BY DEFAULT AS IDENTITY",
                "ALTER b DROP IDENTITY",
                "ALTER b SET DEFAULT 1",
            ),
        ),
        same("comment", "COMMENT ON COLUMN {t}.v IS 'text'"),
        same("grants", "GRANT SELECT (v) ON {t} TO PUBLIC"),
        # constraints and indexes
        same("check", *alter("ADD CONSTRAINT positive CHECK (a > 0) NOT VALID", "VALIDATE CONSTRAINT positive")),
        same("unique", *alter("ADD UNIQUE (a)")),
        same("index", "CREATE INDEX ON {t} (v)", "REINDEX TABLE {t}"),
        same("another name of the key", *alter("RENAME CONSTRAINT {t}_pkey TO {t}_key")),
        same("identity full", *alter("REPLICA IDENTITY FULL")),
        same(
            "identity by another index",
            *alter("ALTER a SET NOT NULL", "ADD UNIQUE (a)", "REPLICA IDENTITY USING INDEX {t}_a_key"),
            busy=STOPPED,
        ),
        same("another primary key", *alter("DROP CONSTRAINT {t}_pkey", "ADD PRIMARY KEY (a)"), busy=STOPPED),
        # settings of the table
        same("settings", *alter("SET (fillfactor = 70)", "SET TABLESPACE pg_default", "OWNER TO CURRENT_USER")),
        same("triggers and rules", *alter("DISABLE TRIGGER ALL", "ENABLE TRIGGER ALL", "ENABLE ROW LEVEL SECURITY")),
        same("vacuum", "VACUUM {t}", "ANALYZE {t}"),
        same("vacuum full", "VACUUM FULL {t}"),
        same("cluster", "CLUSTER {t} USING {t}_pkey"),
        same("vacuum full of a column with a constant", *alter("ADD z int DEFAULT 5"), "{run}", "VACUUM FULL {t}"),
        same("access method", *alter("SET ACCESS METHOD heap"), since=15),
        same("type of the table", "CREATE TYPE {t}_row AS (id int)"),
        same("a child", "CREATE TABLE {t}_child () INHERITS ({t})", "INSERT INTO {t}_child (id, a) VALUES (99, 1)"),
        # rows
        same("truncate", "TRUNCATE {t}"),
        same("truncate and rows", "TRUNCATE {t}", "INSERT INTO {t} (id, a) VALUES (1, 5)"),
        same("truncate and vacuum full", "TRUNCATE {t}", "INSERT INTO {t} (id, a) VALUES (1, 5)", "VACUUM FULL {t}"),
        stopped(
            "truncate, rows, other values",
            "TRUNCATE {t}",
            "INSERT INTO {t} (id, a) VALUES (1, 5)",
            *alter("ALTER a TYPE int USING a * 2"),
        ),
        # the table itself
        stopped(
            "another table of the same name",
            REPLACED,
            "ALTER PUBLICATION cdc ADD TABLE {t}",
            "INSERT INTO {t} (id, a) VALUES (1, 5)",
        ),
        # partitions
        parts("a new partition", SAME, "CREATE TABLE {t}_top PARTITION OF {t} FOR VALUES FROM (20) TO (30)"),
        parts(
            "a new partition with rows",
            SAME,
            "BEGIN; CREATE TABLE {t}_top PARTITION OF {t} FOR VALUES FROM (20) TO (30); INSERT INTO {t} VALUES (21, 5);"
            " COMMIT",
            "INSERT INTO {t} VALUES (22, 5)",
        ),
        parts(
            "an empty table is attached, and filled",
            SAME,
            "CREATE TABLE {t}_top (LIKE {t})",
            "ALTER TABLE {t} ATTACH PARTITION {t}_top FOR VALUES FROM (20) TO (30)",
            "INSERT INTO {t} VALUES (22, 5)",
        ),
        parts(
            "a table with rows is attached",
            STOPPED,
            "CREATE TABLE {t}_top (LIKE {t})",
            "INSERT INTO {t}_top VALUES (21, 5)",
            "ALTER TABLE {t} ATTACH PARTITION {t}_top FOR VALUES FROM (20) TO (30)",
            "INSERT INTO {t} VALUES (22, 5)",
        ),
        parts(
            "a table with rows is attached in one transaction",
            STOPPED,
            "BEGIN; CREATE TABLE {t}_top (LIKE {t}); INSERT INTO {t}_top VALUES (21, 5);"
            " ALTER TABLE {t} ATTACH PARTITION {t}_top FOR VALUES FROM (20) TO (30); COMMIT",
        ),
        parts("a partition is detached", STOPPED, "ALTER TABLE {t} DETACH PARTITION {t}_mid"),
        parts("a partition is dropped", STOPPED, "DROP TABLE {t}_mid"),
        parts("a partition is truncated", STOPPED, "TRUNCATE {t}_mid"),
        parts("the whole is truncated", SAME, "TRUNCATE {t}"),
        parts("a partition is rewritten", SAME, "VACUUM FULL {t}_mid"),
        parts(
            "a partition leaves and returns",
            SAME,
            "ALTER TABLE {t} DETACH PARTITION {t}_mid",
            "ALTER TABLE {t} ATTACH PARTITION {t}_mid FOR VALUES FROM (10) TO (20)",
        ),
        parts(
            "a partition leaves, changes and returns",
            STOPPED,
            "ALTER TABLE {t} DETACH PARTITION {t}_mid",
            "UPDATE {t}_mid SET a = 0",
            "ALTER TABLE {t} ATTACH PARTITION {t}_mid FOR VALUES FROM (10) TO (20)",
        ),
        parts("values of a partitioned table", STOPPED, "ALTER TABLE {t} ALTER a TYPE int USING a * 2"),
        parts("a partitioned table gets a column", SAME, "ALTER TABLE {t} ADD z int DEFAULT 5"),
    ]
)
