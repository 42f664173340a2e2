"""The meaning of a change: decoded, and as a merge."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
MERGE_SQL = "airflow_cdc_provider/targets/sparksql/merge_sql.py"
POSTGRES = "airflow_cdc_provider/connectors/sources/postgres"

MEANINGS = (
    Mutant(
        "a key-changing update is not split",
        f"{POSTGRES}/change_runs.py",
        "        elif row.key_changed:",
        "        elif row.key_changed and row.after is None:",
        ("tests/connectors/test_postgres_decode.py",),
    ),
    Mutant(
        "among many rows one with a changed key counts as unchanged",
        f"{POSTGRES}/row_columns.py",
        "reader.schema.key and not key_before.equals(key)",
        "reader.schema.key and key_before.equals(key)",
        ("tests/connectors/test_postgres_blocks.py",),
    ),
    Mutant(
        "of many rows one with trailing bytes counts as complete",
        f"{POSTGRES}/row_columns.py",
        "plain &= at == ends",
        "plain &= at <= ends",
        ("tests/connectors/test_postgres_blocks.py",),
    ),
    Mutant(
        "the changes of an open transaction are before the end of the previous one",
        f"{POSTGRES}/decode.py",
        "            self.items += run.read(0, run.ended)",
        "            self.items += run.read(0, len(run.messages))",
        ("tests/connectors/test_postgres_blocks.py",),
    ),
    Mutant(
        "an unchanged wide value is taken for NULL",
        f"{POSTGRES}/row_images.py",
        'None if cell is UNCHANGED else "null"',
        '"null" if cell is UNCHANGED else "null"',
        ("tests/connectors/test_postgres_decode.py",),
    ),
    Mutant(
        "a value that a partition does not log is NULL",
        f"{POSTGRES}/partition_images.py",
        "lacks = any(",
        "lacks = not self.absent and any(",
        ("tests/connectors/test_postgres_partition_images.py",),
    ),
    Mutant(
        "a partition logs the key of its table",
        f"{POSTGRES}/messages.py",
        "if column not in columns:",
        "if not column:",
        ("tests/connectors/test_postgres_partition_images.py",),
    ),
    Mutant(
        "what a partition logged once it logs for ever",
        f"{POSTGRES}/partition_images.py",
        "lesser.pop(part.oid, None)",
        "lesser.get(part.oid, None)",
        ("tests/connectors/test_postgres_partition_images.py",),
    ),
    Mutant(
        "a transaction that ends at the lower bound is read twice",
        f"{POSTGRES}/decode.py",
        "self._skipping = begin.commit_lsn < self._lo",
        "self._skipping = begin.commit_lsn + 64 < self._lo",
        ("tests/connectors/test_postgres_decode.py",),
    ),
    Mutant(
        "a window acknowledges the position that it read",
        f"{POSTGRES}/replication.py",
        "STATUS, written, NO_POSITION, NO_POSITION",
        "STATUS, written, written, NO_POSITION",
        ("tests/connectors/test_postgres_replication.py",),
    ),
    Mutant(
        "any keepalive of the server ends a window",
        f"{POSTGRES}/replication.py",
        "            if server_lsn >= limit:",
        "            if server_lsn >= lo:",
        ("tests/connectors/test_postgres_replication.py",),
    ),
    Mutant(
        "a window begins at the position of the slot",
        f"{POSTGRES}/replication.py",
        "LOGICAL {lsn_text(lo)} ",
        "LOGICAL 0/0 ",
        ("tests/connectors/test_postgres_replication.py",),
    ),
    Mutant(
        "an older change is written over a newer one",
        f"{CORE}/table/merge_plan.py",
        "        yield Clause(RowMatch.BOTH, Action.UPDATE, (LIVE, PUT), guarded=True)",
        "        yield Clause(RowMatch.BOTH, Action.UPDATE, (LIVE, PUT))",
        ("tests/core/test_merge.py",),
    ),
    Mutant(
        "a partial change without a row is inserted",
        f"{CORE}/table/merge_plan.py",
        "            yield Clause(RowMatch.STAGED_ONLY, Action.REFUSE, (LIVE,), partial_only=True)",
        "            yield from ()",
        ("tests/core/test_merge.py",),
    ),
    Mutant(
        "a NULL in a key matches no row",
        MERGE_SQL,
        """{'<=>' if column.nullable else '='} {S}.{quoted""",
        """{'='} {S}.{quoted""",
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "the newest partial image wins whole",
        MERGE_SQL,
        "    if not plan.partial:\n        return value",
        "    if plan.schema.key:\n        return value",
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "an equal order passes the guard in the stream too",
        MERGE_SQL,
        'if plan.not_older else f"> {T}.{ORDER}"',
        "",
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "a repair does not write over what it finds",
        MERGE_SQL,
        'newer = f">= coalesce',
        'newer = f"> coalesce',
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "a row that comes back stays flagged deleted",
        MERGE_SQL,
        '{DELETED: "false"} if plan.soft',
        '{DELETED: f"{T}.{DELETED}"} if plan.soft',
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "floats are compared as numbers",
        MERGE_SQL,
        "if column.type.kind in FLOATING:",
        "if column.name in FLOATING:",
        ("tests/core/test_delta_sql.py",),
    ),
    Mutant(
        "an ignored delete deletes",
        f"{CORE}/table/merge_plan.py",
        "if self.on_delete is not OnDelete.IGNORE:",
        "if self.on_delete is not None:",
        ("tests/core/test_merge.py",),
    ),
    Mutant(
        "a truncate leaves the rows that are not in the batch",
        f"{CORE}/table/merge_plan.py",
        "        if self.truncated:",
        "        if self.truncated and self.soft:",
        ("tests/core/test_merge.py",),
    ),
    Mutant(
        "the bounds of a merge exclude keys",
        f"{CORE}/table/merge_plan.py",
        "max(joined[-1][1], high))",
        "high)",
        ("tests/core/test_merge.py",),
    ),
)
