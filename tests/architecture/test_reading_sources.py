"""Spark jobs read rows and changes of a source through one module, which applies the columns settings of each table.
They get the source and the key of hashes from another one, which requires those that the run was decided under."""

from __future__ import annotations

import ast
from pathlib import Path

OPENED = frozenset({"open_source", "hash_key"})
OPENING = frozenset({"job.py", "planned_source.py"})
JOBS = Path(__file__).parents[2] / "spark_jobs"
CONNECTOR = "source"
READS = frozenset({"read", "read_split", "copy", "fetch", "reread"})
"""Methods of connectors whose results contain values of rows. Checksums and hashes of a database are only used for
tables without such settings."""


def direct_reads(code: str) -> list[str]:
    """Calls of these methods on something that is named ``source``."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name == CONNECTOR:
                found.append(f"{node.lineno}: {ast.unparse(node.func)}")
    return found


def test_no_job_reads_values_past_the_columns_settings() -> None:
    assert direct_reads("job.source.copy(task)\nsource.read(split)\nreading.fetch(source)") == [
        "1: job.source.copy",
        "2: source.read",
    ]
    found = {str(path): reads for path in JOBS.rglob("*.py") if (reads := direct_reads(path.read_text()))}
    assert found == {}


def test_no_job_opens_a_source_or_takes_a_key_that_may_not_be_those_of_its_run() -> None:
    found = {
        (path.name, name.name)
        for path in JOBS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in OPENED
    }
    assert {name for name, _ in found} == OPENING
    assert ("job.py", "hash_key") not in found
