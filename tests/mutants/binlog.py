"""What the binlog of MySQL and MariaDB says."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

MYSQL = "airflow_cdc_provider/connectors/sources/mysql"
EVENTS = "tests/connectors/test_mysql_events.py"
STREAM = "tests/connectors/test_mysql_stream.py"
ALTERED = "tests/connectors/test_mysql_altered_columns.py"
FILTERS = "tests/connectors/test_mysql_filters.py"
TYPES = "tests/connectors/test_mysql_types.py"
WINDOWS = "tests/connectors/test_mysql_properties.py"
SAVED = "tests/connectors/test_mysql_saved.py"

BINLOG = (
    Breakage(
        "a column that is dropped within a window is gone from the target, too",
        f"{MYSQL}/known_columns.py",
        "if column.name not in schema.names)",
        "if column.name in ())",
        (ALTERED,),
    ),
    Breakage(
        "a column that was generated is taken for an ordinary one",
        f"{MYSQL}/decode.py",
        "return sorted(unexplained & set(self._settings.redefined(table))) if unexplained else []",
        "return []",
        (ALTERED,),
    ),
    Breakage(
        "a column that its window adds counts as one that was generated",
        f"{MYSQL}/known_columns.py",
        "        self._added |= set(added_columns(statement.clauses))\n",
        "",
        (ALTERED,),
    ),
    Breakage(
        "an ALTER under the first copy is passed over",
        f"{MYSQL}/known_columns.py",
        "self._uncopied = task.state in UNCOPIED",
        "self._uncopied = False",
        (ALTERED,),
    ),
    Breakage(
        "a foreign key that changes rows may come behind the copy",
        f"{MYSQL}/alterations.py",
        "        yield from _foreign_key_changes(clause)\n",
        "",
        (ALTERED,),
    ),
    Breakage(
        "a row filter compares what the copy holds in place of a zero date",
        f"{MYSQL}/row_images.py",
        "return self._plain(cell)",
        "return self._read(cell)",
        (FILTERS,),
    ),
    Breakage(
        "a zero date that is NOT NULL is NULL to a row filter",
        f"{MYSQL}/copy.py",
        'is_null = f"{name} <=> NULL"',
        'is_null = f"{name} IS NULL"',
        (FILTERS,),
    ),
    Breakage(
        "a table whose rows a foreign key changes is copied",
        f"{MYSQL}/copy.py",
        "        refuse_cascades(connection, table)\n",
        "",
        (ALTERED,),
    ),
    Breakage(
        "types that a window takes over from the catalog are not judged",
        f"{MYSQL}/schemas.py",
        "and not (keeps_values(native, column) and _type_keeps_values(native, taken_over[column.name]))",
        "and not keeps_values(native, column)",
        (ALTERED,),
    ),
    Breakage(
        "files of the binlog are in the order of their names",
        f"{MYSQL}/positions.py",
        "    return int(suffix)",
        "    return int(suffix[:6])",
        (EVENTS,),
    ),
    Breakage(
        "a place behind four gibibytes wraps",
        f"{MYSQL}/binlog.py",
        "pos + ((log_pos - pos) & 0xFFFFFFFF)",
        "log_pos",
        (EVENTS,),
    ),
    Breakage(
        "a window may end where the protocol cannot begin",
        f"{MYSQL}/decode.py",
        "        if event.end <= MAX_REQUEST_POS:",
        "        if event.end:",
        (EVENTS,),
    ),
    Breakage(
        "rows of a transaction that a crash cut off count",
        f"{MYSQL}/decode.py",
        "        if self._open:\n            self._add_holes(event, self._touched",
        "        if not self._open:\n            self._add_holes(event, self._touched",
        (EVENTS,),
    ),
    Breakage(
        "what was rolled back counts",
        f"{MYSQL}/decode.py",
        '                self._add_holes(event, self._touched, "rows were logged and then rolled back")',
        "                pass",
        (EVENTS,),
    ),
    Breakage(
        "a statement that is logged instead of its rows passes",
        f"{MYSQL}/decode.py",
        '                self._add_holes(event, ours, "a statement was logged instead of the rows that it changed")',
        "                pass",
        (STREAM,),
    ),
    Breakage(
        "a window goes beyond its limit",
        f"{MYSQL}/decode.py",
        "BinlogPosition(file_number(event.file), event.start) >= self._limit:",
        "BinlogPosition(file_number(event.file), event.start) > self._limit:",
        (STREAM, WINDOWS),
    ),
    Breakage(
        "a file that ends before our place is the one that it was",
        f"{MYSQL}/stream.py",
        "        if pos > files[file]:",
        "        if pos > files[file] + (1 << 40):",
        (STREAM,),
    ),
    Breakage(
        "a binlog that was reset is taken for the one before",
        f"{MYSQL}/stream.py",
        "        if not same:",
        "        if same is None:",
        (STREAM,),
    ),
    Breakage(
        "a column that was not sent is NULL",
        f"{MYSQL}/row_images.py",
        "        new = fill_absent(old, new)",
        "        new = [None if cell is ABSENT else cell for cell in new]",
        (STREAM,),
    ),
    Breakage(
        "the old key of a row that cannot be read stays",
        f"{MYSQL}/records.py",
        "        departure = [self._record(departed, DEPARTS, True)] if departed else []",
        "        departure: list[ChangeRecord] = []",
        (STREAM,),
    ),
    Breakage(
        "columns without names are taken from a table that was altered since",
        f"{MYSQL}/schemas.py",
        "    if altered:\n",
        "    if altered and table is None:\n",
        (STREAM,),
    ),
    Breakage(
        "a default of an added column counts as known",
        f"{MYSQL}/schemas.py",
        "name not in target.names and described[name].default)",
        "name not in target.names and not described)",
        (STREAM,),
    ),
    Breakage(
        "negative times do not borrow from the whole",
        f"{MYSQL}/cells.py",
        '    sign, packed = ("-", -packed) if packed < 0 else ("", packed)\n    clock',
        '    sign = "-" if packed < 0 else ""\n    clock',
        (TYPES,),
    ),
    Breakage(
        "the sign of a decimal counts as a digit",
        f"{MYSQL}/cells.py",
        "        packed = bytes([cell[0] ^ 0x80, *cell[1:]])",
        "        packed = bytes(cell)",
        (TYPES,),
    ),
    Breakage(
        "padding of binary columns is lost",
        f"{MYSQL}/cells.py",
        'return lambda cell: cell.ljust(column.octets, b"\\0")',
        "return lambda cell: cell",
        (TYPES,),
    ),
    Breakage(
        "a copy stands at the end of the binlog",
        f"{MYSQL}/copy.py",
        'int(status["Binlog_snapshot_position"]))',
        'int(status["Binlog_snapshot_position"]) + (1 << 20))',
        (TYPES,),
    ),
    Breakage(
        "the last row of a share is read twice",
        f"{MYSQL}/copy.py",
        '(key_range.high, "<")',
        '(key_range.high, "<=")',
        (TYPES,),
    ),
    Breakage(
        "the last event of a file that somebody saved is left out",
        f"{MYSQL}/binlog_files.py",
        "at + size > len(data):",
        "at + size >= len(data):",
        (SAVED,),
    ),
)
