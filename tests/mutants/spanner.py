"""Merges into Spanner, in one transaction and in parts, copies, and published cuts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SPANNER = "airflow_cdc_provider/targets/spanner"
DECISIONS, PARTS = ("tests/core/test_spanner.py",), ("tests/core/test_spanner_parts.py",)
TARGET, DRIVERS = ("tests/connectors/test_spanner_target.py",), ("tests/spark/test_spanner_parts.py",)

SPANNER_MUTANTS = (
    Mutant(
        "a table of Spanner that deletes rows takes changes",
        "airflow_cdc_provider/targets/spanner/target.py",
        "        if named.deletes:",
        "        if False:",
        ("tests/core/test_spanner_deletions.py",),
    ),
    Mutant(
        "an equal order key passes the row guard",
        f"{SPANNER}/changes.py",
        "staged.order > found.order or",
        "staged.order >= found.order or",
        DECISIONS,
    ),
    Mutant(
        "a row that is put back keeps values of the deleted one",
        f"{SPANNER}/changes.py",
        "Verb.REPLACE if found.deleted else Verb.UPDATE",
        "Verb.UPDATE",
        DECISIONS,
    ),
    Mutant(
        "a NULL counts in the hash of a row",
        f"{SPANNER}/values.py",
        " if found[row] is not None",
        "",
        DECISIONS,
    ),
    Mutant(
        "rows without a key arrive before the others leave",
        f"{SPANNER}/parts.py",
        "SWEEP, FIRST, SECOND = -1, 0, 1",
        "SWEEP, FIRST, SECOND = -1, 1, 0",
        PARTS,
    ),
    Mutant(
        "a part is applied and not marked",
        f"{SPANNER}/large_merge.py",
        "transaction.write(*applied.mutations, *parts.marked(part, applied.counts))",
        "transaction.write(*applied.mutations)",
        PARTS,
    ),
    Mutant(
        "a merge in parts ends with the number of rows that it began with",
        f"{SPANNER}/large_merge.py",
        "counts.rows_after(row.record.rows if row.record else None)",
        "row.record.rows if row.record else None",
        PARTS,
    ),
    Mutant(
        "the counts of a sweep are those of its last page",
        f"{SPANNER}/large_merge.py",
        "parts.moved(SWEEP_PART, page.last, counts + page.counts)",
        "parts.moved(SWEEP_PART, page.last, page.counts)",
        PARTS,
    ),
    Mutant(
        "a truncate in one transaction leaves the rows before it",
        f"{SPANNER}/merge.py",
        "return Applied([everything, *changed.mutations]",
        "return Applied([*changed.mutations]",
        PARTS,
    ),
    Mutant(
        "the state is read while a merge has begun and not ended",
        f"{SPANNER}/target.py",
        "elif row.begun is not None:",
        "elif False:",
        DRIVERS,
    ),
    Mutant(
        "a merge that has begun does not prevent a commit",
        f"{SPANNER}/target.py",
        "(row.identity, row.record, row.begun) != (expected.identity, expected.control, None)",
        "(row.identity, row.record) != (expected.identity, expected.control)",
        TARGET,
    ),
    Mutant(
        "a copy is committed although a newer one was announced",
        f"{SPANNER}/copies.py",
        "if row.loading != record.nonce:",
        "if False:",
        TARGET,
    ),
    Mutant(
        "a commit leaves the announcement of a copy",
        f"{SPANNER}/control.py",
        'return replace(row, record=record, begun=None, loading="")',
        "return replace(row, record=record, begun=None)",
        TARGET,
    ),
    Mutant(
        "a table of another origin is renamed",
        f"{SPANNER}/target.py",
        "if tables.named and not tables.named.identity:",
        "if False:",
        TARGET,
    ),
    Mutant(
        "two rows with one key become one",
        f"{SPANNER}/copies.py",
        "if found != record.rows:",
        "if False:",
        TARGET,
    ),
    Mutant(
        "a cut is published although a table has moved on",
        f"{SPANNER}/cuts.py",
        "(row.identity, row.record.window, row.begun) != (table.identity, table.window, None)",
        "row.begun is not None",
        TARGET,
    ),
    Mutant(
        "a new copy leaves the cut of the old one",
        f"{SPANNER}/copies.py",
        "        withdraw(transaction, record.replicator)\n",
        "",
        TARGET,
    ),
    Mutant(
        "a commit whose answer was lost is not found",
        f"{SPANNER}/target.py",
        "    if has_commit(row.state, record):\n        return None\n",
        "",
        TARGET,
    ),
)
