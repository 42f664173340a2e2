"""The binlog of MySQL and MariaDB."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MYSQL = "airflow_cdc_provider/connectors/sources/mysql"
EVENTS = "tests/connectors/test_mysql_events.py"
STREAM = "tests/connectors/test_mysql_stream.py"
ALTERED = "tests/connectors/test_mysql_altered_columns.py"
FILTERS = "tests/connectors/test_mysql_filters.py"
TYPES = "tests/connectors/test_mysql_types.py"
WINDOWS = "tests/connectors/test_mysql_properties.py"
REPLICAS = "tests/connectors/test_mysql_replicas.py"
RENAMES = "tests/connectors/test_mysql_table_renames.py"
SAVED = "tests/connectors/test_mysql_saved.py"

BINLOG = (
    Mutant(
        "a table that takes the former name of a followed one is read as that one",
        f"{MYSQL}/decode.py",
        "self._tasks[after] = self._tasks.pop(before)",
        "self._tasks[after] = self._tasks[before]",
        (RENAMES,),
    ),
    Mutant(
        "a followed table is read under its present name from the beginning",
        f"{MYSQL}/stream.py",
        "names[task.table][0] for task in tasks if task.renamed_to",
        "names[task.table][-1] for task in tasks if task.renamed_to",
        (RENAMES,),
    ),
    Mutant(
        "a table whose id cannot be read counts as dropped",
        f"{MYSQL}/source.py",
        "not exists(connection, table) and names is not None and table not in names",
        "not exists(connection, table) and table not in (names or {})",
        (RENAMES,),
    ),
    Mutant(
        "a table that is gone when its window is read has no changes",
        f"{MYSQL}/stream.py",
        "if missing or any(",
        "if any(",
        (RENAMES,),
    ),
    Mutant(
        "a column that is dropped within a window is dropped from the target",
        f"{MYSQL}/known_columns.py",
        "if column.name not in schema.names)",
        "if column.name in ())",
        (ALTERED,),
    ),
    Mutant(
        "a column that was generated is taken for an ordinary one",
        f"{MYSQL}/decode.py",
        "return sorted(unexplained & set(self._settings.redefined(table))) if unexplained else []",
        "return []",
        (ALTERED,),
    ),
    Mutant(
        "a column that its window adds counts as one that was generated",
        f"{MYSQL}/known_columns.py",
        "        self._added |= set(added_columns(statement.clauses))\n",
        "",
        (ALTERED,),
    ),
    Mutant(
        "an ALTER during the first copy is ignored",
        f"{MYSQL}/known_columns.py",
        "schema = None if self.view.uncopied else self._schema",
        "schema = self._schema",
        (ALTERED,),
    ),
    Mutant(
        "a foreign key that changes rows may be added after the copy",
        f"{MYSQL}/alterations.py",
        "        yield from _foreign_key_changes(clause)\n",
        "",
        (ALTERED,),
    ),
    Mutant(
        "rows may have equal keys for some time without a hole",
        f"{MYSQL}/alterations.py",
        "    if drops_key(clauses):\n        yield",
        "    if False:\n        yield",
        (ALTERED,),
    ),
    Mutant(
        "a row filter compares the value in the copy instead of a zero date",
        f"{MYSQL}/row_images.py",
        "return self._plain(cell)",
        "return self._read(cell)",
        (FILTERS,),
    ),
    Mutant(
        "a zero date that is NOT NULL is NULL to a row filter",
        f"{MYSQL}/copy.py",
        'is_null = f"{name} <=> NULL"',
        'is_null = f"{name} IS NULL"',
        (FILTERS,),
    ),
    Mutant(
        "a table whose rows a foreign key changes is copied",
        f"{MYSQL}/copy.py",
        "    refuse_cascades(connection, table)\n",
        "",
        (ALTERED,),
    ),
    Mutant(
        "types that a window reads from the catalog are not checked",
        f"{MYSQL}/schemas.py",
        "and not (keeps_values(native, column) and _type_keeps_values(native, taken_over[column.name]))",
        "and not keeps_values(native, column)",
        (ALTERED,),
    ),
    Mutant(
        "files of the binlog are in the order of their names",
        f"{MYSQL}/positions.py",
        "    return int(suffix)",
        "    return int(suffix[:6])",
        (EVENTS,),
    ),
    Mutant(
        "a position above four gibibytes wraps around",
        f"{MYSQL}/binlog.py",
        "pos + ((log_pos - pos) & 0xFFFFFFFF)",
        "log_pos",
        (EVENTS,),
    ),
    Mutant(
        "a window may end where the protocol cannot begin",
        f"{MYSQL}/decode.py",
        "        if event.end <= MAX_REQUEST_POS:",
        "        if event.end:",
        (EVENTS,),
    ),
    Mutant(
        "rows of a transaction that a crash cut off count",
        f"{MYSQL}/decode.py",
        "        if self._open:\n            self._add_holes(event, self._touched",
        "        if not self._open:\n            self._add_holes(event, self._touched",
        (EVENTS,),
    ),
    Mutant(
        "changes that were rolled back count",
        f"{MYSQL}/decode.py",
        '                self._add_holes(event, self._touched, "rows were logged and then rolled back")',
        "                pass",
        (EVENTS,),
    ),
    Mutant(
        "a statement that is logged instead of its rows is accepted",
        f"{MYSQL}/decode.py",
        '                self._add_holes_of(event, ours, "a statement was logged instead of the rows that it changed")',
        "                pass",
        (STREAM,),
    ),
    Mutant(
        "an event of an unknown type is skipped",
        f"{MYSQL}/decode.py",
        "case unknown if unknown not in binlog.HARMLESS:",
        "case unknown if unknown is None:",
        (EVENTS,),
    ),
    Mutant(
        "the statement that loads a file is read at the place of another one",
        f"{MYSQL}/binlog.py",
        "LOAD_BYTES if event.type == LOAD_QUERY else 0",
        "0",
        (STREAM,),
    ),
    Mutant(
        "a window goes beyond its limit",
        f"{MYSQL}/decode.py",
        "BinlogPosition(file_number(event.file), event.start) >= self._limit:",
        "BinlogPosition(file_number(event.file), event.start) > self._limit:",
        (STREAM, WINDOWS),
    ),
    Mutant(
        "a file that ends before our position counts as unchanged",
        f"{MYSQL}/stream.py",
        "        if pos > files[file]:",
        "        if pos > files[file] + (1 << 40):",
        (STREAM,),
    ),
    Mutant(
        "a binlog that was reset counts as the previous one",
        f"{MYSQL}/stream.py",
        "        if not same:",
        "        if same is None:",
        (STREAM,),
    ),
    Mutant(
        "a column that was not sent is NULL",
        f"{MYSQL}/row_images.py",
        "        new = fill_absent(old, new)",
        "        new = [None if cell is ABSENT else cell for cell in new]",
        (STREAM,),
    ),
    Mutant(
        "the old key of a row that cannot be read stays",
        f"{MYSQL}/records.py",
        "        departure = [self._record(departed, DEPARTS, True)] if departed else []",
        "        departure: list[ChangeRecord] = []",
        (STREAM,),
    ),
    Mutant(
        "columns without names are taken from a table that was altered since",
        f"{MYSQL}/schemas.py",
        "    if altered:\n",
        "    if altered and table is None:\n",
        (STREAM,),
    ),
    Mutant(
        "a default of an added column counts as known",
        f"{MYSQL}/schemas.py",
        "if name in described and described[name].default]",
        "if name in described and not described[name]]",
        (STREAM,),
    ),
    Mutant(
        "negative times are decoded like positive ones",
        f"{MYSQL}/cells.py",
        '    sign, packed = ("-", -packed) if packed < 0 else ("", packed)\n    clock',
        '    sign = "-" if packed < 0 else ""\n    clock',
        (TYPES,),
    ),
    Mutant(
        "the sign of a decimal counts as a digit",
        f"{MYSQL}/cells.py",
        "        packed = bytes([cell[0] ^ 0x80, *cell[1:]])",
        "        packed = bytes(cell)",
        (TYPES,),
    ),
    Mutant(
        "padding of binary columns is lost",
        f"{MYSQL}/cells.py",
        'return lambda cell: cell.ljust(column.octets, b"\\0")',
        "return lambda cell: cell",
        (TYPES,),
    ),
    Mutant(
        "the position of a copy is the end of the binlog",
        f"{MYSQL}/copy.py",
        'int(status["Binlog_snapshot_position"]))',
        'int(status["Binlog_snapshot_position"]) + (1 << 20))',
        (TYPES,),
    ),
    Mutant(
        "the last row of a split is read twice",
        f"{MYSQL}/copy.py",
        '(key_range.high, "<")',
        '(key_range.high, "<=")',
        (TYPES,),
    ),
    Mutant(
        "the last event of a saved file is not read",
        f"{MYSQL}/binlog_files.py",
        "at + size > len(data):",
        "at + size >= len(data):",
        (SAVED,),
    ),
    Mutant(
        "rows of a transaction whose events have no offsets share an order key",
        f"{MYSQL}/binlog.py",
        "if log_pos else pos + size",
        "if log_pos else pos",
        (SAVED,),
    ),
    Mutant(
        "a replica that does not log what it replicates is read",
        f"{MYSQL}/replication.py",
        'found[1] == "OFF"',
        'found[1] == "never"',
        (REPLICAS,),
    ),
    Mutant(
        "a replica that has stopped is fresh",
        f"{MYSQL}/replication.py",
        "if not channel.runs:",
        "if channel.error:",
        (REPLICAS,),
    ),
    Mutant(
        "a late replica is fresh",
        f"{MYSQL}/replication.py",
        "timedelta(seconds=behind_s)",
        "timedelta(0)",
        (REPLICAS,),
    ),
    Mutant(
        "a tag of a GTID is left out",
        f"{MYSQL}/gtids.py",
        "}:{tag}:{",
        "}:{",
        ("tests/connectors/test_mysql_gtids.py",),
    ),
)
