"""What a message of an event format means, and where it stands."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

FORMATS = "airflow_cdc_provider/connectors/formats"
DEBEZIUM = "airflow_cdc_provider/connectors/debezium"
YDB = "airflow_cdc_provider/connectors/ydb"
DATASTREAM = "airflow_cdc_provider/connectors/datastream"
TESTS = "tests/connectors/formats"
CONTRACT = (f"{TESTS}/test_format_contract.py",)
SIMULATED = (f"{TESTS}/test_simulated_sources.py",)
BAD = (f"{TESTS}/test_bad_input.py",)

TOGETHER = (f"{TESTS}/test_decoded_together.py", f"{TESTS}/test_quick_texts.py")

EVENT_FORMATS = (
    Breakage(
        "times of Parquet are read as times",
        f"{FORMATS}/row_files.py",
        "rows = batch.cast(_unlogical(batch.schema)) if connect_avro.written_by_connect(avro) else batch",
        "rows = batch",
        (f"{TESTS}/test_row_files.py",),
    ),
    Breakage(
        "Connect's names of types are not read",
        f"{FORMATS}/connect_avro.py",
        "if isinstance(kind.get(NAME), str):",
        "if False:",
        (f"{TESTS}/test_row_files.py",),
    ),
    Breakage(
        "an array that was not sent is null",
        f"{DEBEZIUM}/changes.py",
        "if name in after and after[name] is None:",
        "if False:",
        BAD,
    ),
    Breakage(
        "a name in an Avro schema stands for itself",
        f"{DATASTREAM}/tables.py",
        'field_of(resolved(avro), "payload")',
        'field_of(avro, "payload")',
        CONTRACT,
    ),
    Breakage(
        "of two types of one name the last one is meant",
        f"{FORMATS}/avro_names.py",
        'return f"{space}.{name}" if space and "." not in name else name',
        'return name.rpartition(".")[2]',
        (f"{TESTS}/test_avro_names.py",),
    ),
    Breakage(
        "all files of a folder are of one kind",
        "airflow_cdc_provider/connectors/files/heads.py",
        'return IN_FOLDERS.sub("", folder), IN_NAMES.sub("", name)',
        'return folder, ""',
        ("tests/connectors/test_files_source.py",),
    ),
    Breakage(
        "a transaction that does not say which one ended before it stands before all",
        f"{DEBEZIUM}/places.py",
        "previous or lsn:",
        "previous:",
        (f"{TESTS}/test_debezium_places.py",),
    ),
    Breakage(
        "an update without a key in its message keeps its row's key",
        f"{DEBEZIUM}/changes.py",
        "if key and not layout.other_key:",
        "if not layout.other_key:",
        CONTRACT,
    ),
    Breakage(
        "a feed that tells no rows passes the check",
        "airflow_cdc_provider/connectors/feeds/discovery.py",
        "isinstance(item, ChangeRecord) and item.refetch}",
        "isinstance(item, ChangeRecord) and not item}",
        ("tests/connectors/test_files_source.py",),
    ),
    Breakage(
        "an event that lacks a member is read with those that have all",
        f"{FORMATS}/together.py",
        'return rows if members(rows) == names_in(lines, b\'":\', b"\\\\") else None',
        "return rows",
        TOGETHER,
    ),
    Breakage(
        "a placeholder passes for a value where events are read together",
        f"{DEBEZIUM}/plain_images.py",
        "found = pc.is_in(values, placeholders)",
        "found = pc.is_in(values, placeholders.slice(0, 0))",
        TOGETHER,
    ),
    Breakage(
        "a NULL that nobody told counts as told where events are read together",
        f"{DEBEZIUM}/plain_images.py",
        "hidden = pc.or_(hidden, pc.and_(rows.is_before, values.is_null()))",
        "pass",
        TOGETHER,
    ),
    Breakage(
        "a message with the key of another row is read together with whole ones",
        f"{DEBEZIUM}/plain_events.py",
        "            self._require_keys(rows)\n",
        "",
        TOGETHER,
    ),
    Breakage(
        "decimals that are read together lose their sign",
        f"{DEBEZIUM}/decimal_columns.py",
        "number = (number << (64 - bits)) >> (64 - bits)",
        "pass",
        TOGETHER,
    ),
    Breakage(
        "an update of a feed passes for an insert where changes are read together",
        f"{YDB}/plain_changes.py",
        "erased, had_row = records.column(ERASE).is_valid(), before.is_valid()",
        "erased, had_row = records.column(ERASE).is_valid(), before.is_null()",
        TOGETHER,
    ),
    Breakage(
        "PostgreSQL's changes are ordered by their own LSN",
        f"{DEBEZIUM}/places.py",
        'return Place(f"{previous or lsn:016x}{lsn:016x}"',
        'return Place(f"{0:016x}{lsn:016x}"',
        SIMULATED,
    ),
    Breakage(
        "log files are ordered by the length of their names only",
        f"{DEBEZIUM}/places.py",
        'return f"{int(suffix):016x}"',
        'return f"{len(suffix):016x}"',
        SIMULATED,
    ),
    Breakage(
        "rows of one statement of MySQL stand at one place",
        f"{DEBEZIUM}/places.py",
        'else number(source, "row", 8, 0)',
        "else 0",
        SIMULATED,
    ),
    Breakage(
        "Oracle's changes are ordered by their own SCN",
        f"{DEBEZIUM}/places.py",
        'return Place(f"{commit:020x}{thread:04x}',
        'return Place(f"{0:020x}{thread:04x}',
        SIMULATED,
    ),
    Breakage(
        "equal rows of a table without key stand at one place",
        f"{DEBEZIUM}/places.py",
        "ordinal = offset if keyless else 0",
        "ordinal = 0",
        CONTRACT,
    ),
    Breakage(
        "an unavailable value is a text like others",
        f"{DEBEZIUM}/placeholders.py",
        "return value in self.texts",
        "return False",
        SIMULATED,
    ),
    Breakage(
        "halves of a move are linked by headers only",
        f"{DEBEZIUM}/changes.py",
        "operation is Operation.INSERT and (moved or not now.complete)",
        "operation is Operation.INSERT and moved",
        SIMULATED,
    ),
    Breakage(
        "what a row before does not know is NULL",
        f"{DEBEZIUM}/changes.py",
        "if value is not None or name in key}",
        "}",
        CONTRACT,
    ),
    Breakage(
        "the key of a message is not looked at",
        f"{DEBEZIUM}/changes.py",
        "if row.get(name) != value and not layout.other_key and",
        "if False and",
        BAD,
    ),
    Breakage(
        "a tombstone deletes once more",
        f"{DEBEZIUM}/decode.py",
        "elif self._rows is None:",
        "elif self._rows is None and message.key is None:",
        CONTRACT,
    ),
    Breakage(
        "bits are big-endian",
        f"{DEBEZIUM}/converters.py",
        "int.from_bytes(content, 'little')",
        "int.from_bytes(content, 'big')",
        CONTRACT,
    ),
    Breakage(
        "an unsigned number may be negative",
        f"{DEBEZIUM}/converters.py",
        "value += WRAP",
        "value += 0",
        CONTRACT,
    ),
    Breakage(
        "a number is read though a name comes twice",
        f"{FORMATS}/exact_json.py",
        "if len(members) != len(pairs):",
        "if False:",
        BAD,
    ),
    Breakage(
        "the quick reader of JSON overlooks a name that comes twice",
        f"{FORMATS}/exact_json.py",
        'return names_in(text, \'":\', "\\\\") == (_members_of(value) if isinstance(value, CONTAINERS) else 0)',
        "return True",
        (f"{TESTS}/test_exact_json.py",),
    ),
    Breakage(
        "a column that nobody described is passed over",
        f"{FORMATS}/images.py",
        "        if unknown:\n",
        "        if False:\n",
        BAD,
    ),
    Breakage(
        "a reset leaves what it does not name",
        f"{YDB}/json_changes.py",
        "change.record(Operation.REPLACE, images,",
        "change.record(Operation.UPSERT, images,",
        SIMULATED,
    ),
    Breakage(
        "a feed of keys tells rows of nothing but keys",
        f"{YDB}/json_changes.py",
        "then, images.image(key_row), EVERYTHING)",
        "then, images.image(key_row))",
        SIMULATED,
    ),
    Breakage(
        "virtual timestamps count no more",
        f"{YDB}/places.py",
        'return f"{self.step:016x}{self.transaction:016x}{offset:016x}{phase}"',
        'return f"{0:032x}{offset:016x}{phase}"',
        CONTRACT,
    ),
    Breakage(
        "a schema that all partitions tell counts in each",
        f"{YDB}/json_changes.py",
        "record.event_id = f\"{table}:schema:{dumps(told.get('schemaVersion'))}\"",
        'record.event_id = f"{table}:{message.offset}"',
        CONTRACT,
    ),
    Breakage(
        "a backfilled row beats what changed before it was read",
        f"{DATASTREAM}/places.py",
        'BACKFILL, CHANGE = "00", "01"',
        'BACKFILL, CHANGE = "02", "01"',
        SIMULATED,
    ),
    Breakage(
        "the counter of a uuid is decimal",
        f"{DATASTREAM}/places.py",
        "return int(tail, 2)",
        "return int(tail)",
        CONTRACT,
    ),
    Breakage(
        "the type of change alone says what is deleted",
        f"{DATASTREAM}/envelope.py",
        "    if gone or is_deleted:",
        "    if gone:",
        CONTRACT,
    ),
    Breakage(
        "a type of change may say another thing than is_deleted",
        f"{DATASTREAM}/envelope.py",
        "if None not in (gone, is_deleted) and gone != is_deleted:",
        "if False:",
        BAD,
    ),
    Breakage(
        "a file that ends in the middle ends where it ends",
        f"{FORMATS}/avro_file.py",
        'raise Unreadable(NOT_JSON, "the file ends in the middle of a block, or a block is damaged")',
        "return",
        BAD,
    ),
)
