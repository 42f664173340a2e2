"""The change tables of SQL Server."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SQLSERVER = "airflow_cdc_provider/connectors/sources/sqlserver"
CHECK = "tests/connectors/test_sqlserver_check.py"
STREAM = "tests/connectors/test_sqlserver_stream.py"
PARTITIONS = "tests/connectors/test_sqlserver_partitions.py"
TYPES = "tests/connectors/test_sqlserver_types.py"
COPIES = "tests/connectors/test_sqlserver_copies.py"
ALTERED = "tests/connectors/test_sqlserver_alterations.py"
WINDOWS = "tests/connectors/test_sqlserver_properties.py"
QUERIES = "tests/connectors/test_sqlserver_queries.py"

CHANGE_TABLES = (
    Mutant(
        "the statement for a partitioned table lets partitions be switched",
        f"{SQLSERVER}/check_tables.py",
        '", @allow_partition_switch = 0" if table.partitioned else ""',
        '""',
        (PARTITIONS,),
    ),
    Mutant(
        "a window in which partitions could be switched has no hole",
        f"{SQLSERVER}/table_stream.py",
        "        if self._table and segment.instance.misses_switches(self._table):",
        "        if self._table is None:",
        (PARTITIONS,),
    ),
    Mutant(
        "an index that the server does not enforce proves a declared key",
        f"{SQLSERVER}/queries.py",
        "AND i.is_disabled = 0 AND i.is_hypothetical = 0 ",
        "",
        (CHECK,),
    ),
    Mutant(
        "a run believes a declared key",
        f"{SQLSERVER}/check_tables.py",
        "    yield from _declared_key(task, table)\n",
        "",
        (CHECK,),
    ),
    Mutant(
        "row LSNs order the changes of a transaction",
        f"{SQLSERVER}/positions.py",
        "{command & 0xFFFFFFFF:08x}{lsn_text(row)}",
        "{lsn_text(row)}{command & 0xFFFFFFFF:08x}",
        (STREAM,),
    ),
    Mutant(
        "an unchanged large value is NULL",
        f"{SQLSERVER}/row_images.py",
        "ABSENT if known is None else known",
        "known",
        (STREAM,),
    ),
    Mutant(
        "a text that no before image has is NULL",
        f"{SQLSERVER}/row_images.py",
        "ABSENT if one.type in NEVER_IN_BEFORE else cell for one",
        "cell for one",
        (STREAM,),
    ),
    Mutant(
        "a moved row that lacks a large value is accepted",
        f"{SQLSERVER}/changes.py",
        "        if missing:\n",
        "        if missing is None:\n",
        (STREAM,),
    ),
    Mutant(
        "rows with large values may pass through a key",
        f"{SQLSERVER}/changes.py",
        "            if arrived != (self._plain(change.old), False):",
        "            if arrived == (0, False):",
        (STREAM,),
    ),
    Mutant(
        "half an update is an update",
        f"{SQLSERVER}/changes.py",
        "if (before is not None) is not (row.operation == AFTER) or",
        "if",
        (STREAM,),
    ),
    Mutant(
        "changes that cleanup removed are not missed",
        f"{SQLSERVER}/table_stream.py",
        "if start is None or start > segment.after + 1:",
        "if start is None:",
        (STREAM,),
    ),
    Mutant(
        "changes before a capture instance are not missed",
        f"{SQLSERVER}/capture_instances.py",
        "        lost = later[0][0] if later else upto + 1",
        "        lost = 0",
        (STREAM, QUERIES),
    ),
    Mutant(
        "both capture instances of a table deliver its changes",
        f"{SQLSERVER}/capture_instances.py",
        "ends = [*(start - 1 for start, _ in parts[1:]), upto][: len(parts)]",
        "ends = [upto] * len(parts)",
        (QUERIES,),
    ),
    Mutant(
        "a position of another log is accepted",
        f"{SQLSERVER}/stream.py",
        "        if own[1] != position[AT]:",
        "        if own[1] is None:",
        (STREAM,),
    ),
    Mutant(
        "a position that cleanup removed is accepted",
        f"{SQLSERVER}/stream.py",
        "        if own is None:\n",
        "        if own is None and last is None:\n",
        (STREAM,),
    ),
    Mutant(
        "a window ends between the commits of a slice",
        f"{SQLSERVER}/stream.py",
        "after = commits[-1].lsn if len(commits) == COMMITS_AT_ONCE else end",
        "after = end",
        (STREAM, WINDOWS),
    ),
    Mutant(
        "a copy begins before the commit of its anchor is visible",
        f"{SQLSERVER}/copy.py",
        "    if int(age) < SETTLE_S:",
        "    if int(age) < 0:",
        (COPIES,),
    ),
    Mutant(
        "the floor of a copy is before its capture instance",
        f"{SQLSERVER}/copy.py",
        "floor = max(key_after(epoch, position_lsn(sealed)), key_before(epoch, start))",
        "floor = key_after(epoch, position_lsn(sealed))",
        (STREAM,),
    ),
    Mutant(
        "the wait for the capture job ends at once",
        f"{SQLSERVER}/stream.py",
        "if next(session.rows(queries.committed_later(last.lsn, now)), None) is not None:",
        "if now:",
        (COPIES,),
    ),
    Mutant(
        "the last row of a range is read twice",
        f"{SQLSERVER}/queries.py",
        '    bounds += [f"{quoted(key)} < {high}"]',
        '    bounds += [f"{quoted(key)} <= {high}"]',
        (COPIES,),
    ),
    Mutant(
        "a new column counts as NULL in older rows",
        f"{SQLSERVER}/table_stream.py",
        "return not coverage.lost and next(self._session.rows(queries.any_change(parts)), None) is None",
        "return True",
        (ALTERED,),
    ),
    Mutant(
        "a default of a new column is overlooked",
        f"{SQLSERVER}/alterations.py",
        "and not VALUED.search(words) else None",
        "else None",
        (ALTERED,),
    ),
    Mutant(
        "columns that are not captured do not stop their table",
        f"{SQLSERVER}/table_stream.py",
        "        if last > key_after(self._epoch, added):",
        "        if last > key_after(self._epoch + 1, added):",
        (ALTERED,),
    ),
    Mutant(
        "a column is captured if a former one of its name was",
        f"{SQLSERVER}/catalog.py",
        "(own.name, own.number) == (column.name, column.number)",
        "own.name == column.name",
        (COPIES,),
    ),
    Mutant(
        "a conversion that rounds keeps every value",
        f"{SQLSERVER}/alterations.py",
        "    if name != new_name:\n        return False\n",
        "    if name == new_name:\n        return True\n",
        (ALTERED,),
    ),
    Mutant(
        "digits below a microsecond are cut in a key",
        f"{SQLSERVER}/values.py",
        'if exact and digit not in ("", "0"):',
        'if exact and digit == "x":',
        (TYPES,),
    ),
    Mutant(
        "an offset is taken for UTC",
        f"{SQLSERVER}/values.py",
        ".astimezone(UTC)",
        ".replace(tzinfo=UTC)",
        (TYPES,),
    ),
    Mutant(
        "equal floats have one text",
        f"{SQLSERVER}/row_images.py",
        "old[at] == new[at] and not isinstance(new[at], float)",
        "old[at] == new[at]",
        (TYPES,),
    ),
)
