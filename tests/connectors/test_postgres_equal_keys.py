"""Keys with two spellings that the source considers equal: one row there is one row of the copy."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from tests.connectors.conftest import Database, records

NOCASE = "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
SPELLINGS = [
    ("citext", "'A b'", "'a B'"),
    ("text COLLATE nocase", "'Ab'", "'aB'"),
    ("varchar(9) COLLATE nocase", "'Ab'", "'aB'"),
    ("bpchar", "'ab'", "'ab  '"),
    ("numeric", "1.0", "1.00"),
    ("interval", "'1 day'", "'24:00:00'"),
    ("jsonb", "'[1.0]'", "'[1.00]'"),
    ("numeric[]", "'{1.0}'", "'{1.00}'"),
    ("citext[]", "'{A}'", "'{a}'"),
    ("double precision", "'0'", "'-0'"),
    ("real", "'-0'", "'0'"),
]


CITEXT = "SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'"
ICU = "SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu'"


@pytest.fixture
def spelled(database: Database) -> Database:
    """With the extension and the collation if the server has them; the embedded one of the newest version has
    neither."""
    for asks, makes in ((CITEXT, "CREATE EXTENSION citext"), (ICU, NOCASE)):
        if database.ask(asks):
            database.sql(makes)
    return database


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
@pytest.mark.parametrize(("native", "one", "other"), SPELLINGS, ids=[native for native, _, _ in SPELLINGS])
def test_a_key_with_a_new_spelling_moves_its_row(
    spelled: Database, native: str, one: str, other: str, identity: str
) -> None:
    if not all(spelled.ask(asks) for word, asks in (("citext", CITEXT), ("nocase", ICU)) if word in native):
        pytest.skip("this server comes without it")
    spelled.sql(f"CREATE TABLE t (k {native} PRIMARY KEY, v int)", f"ALTER TABLE t REPLICA IDENTITY {identity}")
    spelled.publish("t")
    start = spelled.source.open_stream(["public.t"])
    spelled.sql(
        f"INSERT INTO t VALUES ({one}, 1)",
        f"UPDATE t SET k = {other}",
        f"UPDATE t SET v = 2 WHERE k = {one}",
        f"BEGIN; DELETE FROM t WHERE k = {one}; INSERT INTO t VALUES ({one}, 3); COMMIT",
        f"INSERT INTO t VALUES ({other}, 0) ON CONFLICT (k) DO UPDATE SET k = excluded.k, v = 4",
    )
    assert spelled.ask("SELECT count(*) FROM t") == 1
    held: dict[str, dict[str, object]] = {}
    for record in records(spelled.read(start, spelled.task("public.t"))):
        if record.key_before is not None:
            held.pop(record.key_before)
        if record.key is not None:
            assert record.key not in held
            held[record.key] = json.loads(record.after or "")
    with spelled.source.copy(spelled.task("public.t"), 1, {}, 1) as copy:
        (row,) = spelled.copied(copy)
    assert list(held.values()) == [row]
    spelled.sql(f"DELETE FROM t WHERE k = {one}")
    changes = records(spelled.read(start, spelled.task("public.t")))
    assert [record.key_before for record in changes if record.op == "delete"][-1:] == list(held)


def test_a_row_filter_distinguishes_texts_that_the_source_considers_equal(spelled: Database) -> None:
    if not spelled.ask(ICU):
        pytest.skip("this server comes without it")
    spelled.sql("CREATE TABLE t (id int PRIMARY KEY, c varchar(9) COLLATE nocase, n text COLLATE nocase)")
    spelled.sql("ALTER TABLE t REPLICA IDENTITY FULL")
    spelled.publish("t")
    start = spelled.source.open_stream(["public.t"])
    spelled.sql("INSERT INTO t VALUES (1, 'a', 'a'), (2, 'A', 'a'), (3, 'a', 'A')")
    where = [Condition("c", Comparison.EQUAL, "a"), Condition("n", Comparison.EQUAL, "a")]
    task = spelled.task("public.t", where=where)
    with spelled.source.copy(task, 1, {}, 1) as copy:
        copied = Counter(row["id"] for row in spelled.copied(copy))
    assert copied == Counter(json.loads(record.key or "")[0] for record in records(spelled.read(start, task))) == {1: 1}
