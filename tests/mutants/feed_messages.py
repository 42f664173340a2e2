"""Messages of feeds: which are decoded, in which order, and what is said of the others."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECODERS = "airflow_cdc_provider/connectors/decoders"
REGISTRY = "airflow_cdc_provider/connectors/schema_registry"
FOREIGN = f"{DECODERS}/common/foreign_messages.py"
ENVELOPE = f"{DECODERS}/datastream/envelope.py"
ORACLE = f"{DECODERS}/debezium/positions.py"
NAMED = ("tests/connectors/formats/test_foreign_messages.py",)
DELETES = ("tests/connectors/formats/test_datastream_deletes.py",)
SCHEMAS = ("tests/connectors/formats/test_ydb_schemas.py",)
ORDER = ("tests/connectors/formats/test_oracle_order.py",)
BEFORE = ("tests/connectors/formats/test_before_images.py",)
UNWRAPPED = ("tests/connectors/formats/test_unwrapped_rows.py",)
IDS = ("tests/connectors/registry/test_apicurio_ids.py",)

FEED_MESSAGES = (
    Mutant(
        "a message of another tool is not named",
        FOREIGN,
        "form = form_of(message) or _under_payload(message)",
        "form = _under_payload(message)",
        NAMED,
    ),
    Mutant(
        "the format that reads a message is not named",
        FOREIGN,
        '(f"set `format: {form.format}`" if form.format else "")',
        '""',
        NAMED,
    ),
    Mutant(
        "a payload without its schema is a row without an envelope",
        FOREIGN,
        "form = form_of(message) or _under_payload(message)",
        "form = form_of(message)",
        NAMED,
    ),
    Mutant(
        "any text is repeated as the name of a connector",
        FOREIGN,
        "if NAME.fullmatch(value) else",
        "if value else",
        NAMED,
    ),
    Mutant(
        "an envelope of another connector is read as one of a changefeed",
        f"{DECODERS}/ydb/debezium_json.py",
        "if isinstance(connector, str) and connector not in OF_FORMATS:",
        "if False:",
        NAMED,
    ),
    Mutant(
        "the empty values of a row before a change are known",
        f"{DECODERS}/debezium/table_layouts.py",
        "if name not in self.unknown_before and (",
        "if (",
        BEFORE,
    ),
    Mutant(
        "the empty values of rows before changes are known when they are decoded together",
        f"{DECODERS}/debezium/template_images.py",
        "is_unknown = pc.or_(is_unknown, rows.is_before)",
        "pass",
        BEFORE,
    ),
    Mutant(
        "an unwrapped row with an unsent value need not exist",
        f"{DECODERS}/debezium/unwrapped.py",
        "if operation is Operation.UPSERT and len(columns) < len(sent):",
        "if False:",
        UNWRAPPED,
    ),
    Mutant(
        "a null of an unwrapped row is always a null",
        f"{DECODERS}/debezium/unwrapped.py",
        'elif added.get("__op") not in NEW_ROWS:',
        "elif False:",
        UNWRAPPED,
    ),
    Mutant(
        "every name with two underscores is that of an added field",
        f"{DECODERS}/debezium/unwrapped.py",
        'ADDED = re.compile(f"__(?:',
        'ADDED = re.compile(f"__.*|__(?:',
        UNWRAPPED,
    ),
    Mutant(
        "an envelope is an unwrapped row",
        f"{DECODERS}/debezium/unwrapped.py",
        'if "op" in row and isinstance(source, dict) and "connector" in source:',
        "if False:",
        NAMED,
    ),
    Mutant(
        "a delete of Datastream needs the whole row",
        f"{DECODERS}/datastream/decode.py",
        "if not image.complete and (key is None or not is_delete):",
        "if not image.complete:",
        DELETES,
    ),
    Mutant(
        "a change of Datastream needs no whole row",
        f"{DECODERS}/datastream/decode.py",
        "if not image.complete and (key is None or not is_delete):",
        "if False:",
        DELETES,
    ),
    Mutant(
        "a key of Datastream is a whole row",
        f"{DECODERS}/datastream/decode.py",
        "is_delete and image.complete,",
        "is_delete,",
        DELETES,
    ),
    Mutant(
        "PostgreSQL has one name in Datastream",
        ENVELOPE,
        '"postgres": "postgresql", ',
        "",
        DELETES,
    ),
    Mutant(
        "a schema of a changefeed has the order of its message",
        f"{DECODERS}/ydb/tables.py",
        "for name in sorted(columns)",
        "for name in columns",
        SCHEMAS,
    ),
    Mutant(
        "a declared schema in another order has another id",
        f"{DECODERS}/ydb/tables.py",
        "_content(known) == _content(schema)",
        "known == schema",
        SCHEMAS,
    ),
    Mutant(
        "a schema of a changefeed needs no version",
        f"{DECODERS}/ydb/tables.py",
        "if type(version) is not int or version < 1:",
        "if version is None:",
        SCHEMAS,
    ),
    Mutant(
        "a column of a changefeed needs no type",
        f"{DECODERS}/ydb/tables.py",
        "not isinstance(native, str) or not native:",
        "not isinstance(native, str):",
        SCHEMAS,
    ),
    Mutant(
        "a schema of a changefeed needs no time",
        f"{DECODERS}/ydb/json_changes.py",
        "if timestamp == NO_TIME:",
        "if False:",
        SCHEMAS,
    ),
    Mutant(
        "a truncate of Oracle is part of the transaction before",
        f"{DECODERS}/debezium/source_block.py",
        'if block.connector == "oracle" and block.snapshot == "none":',
        "if False:",
        ORDER,
    ),
    Mutant(
        "a truncate of Oracle comes before the rows that it deletes",
        ORACLE,
        '.ljust(72, "f")',
        '.ljust(72, "0")',
        ORDER,
    ),
    Mutant(
        "a row of Oracle without a commit has the order of its checkpoint",
        ORACLE,
        "if scns is None and not is_snapshot:\n        raise DecodeError(NO_ORDER, WITHOUT_COMMIT)",
        "if scns is None and not is_snapshot:\n        scns = scn",
        ORDER,
    ),
    Mutant(
        "rows of Oracle that share an SCN have no order",
        ORACLE,
        'if not source.get("rs_id"):',
        "if False:",
        ORDER,
    ),
    Mutant(
        "a message of Apicurio's ExtJsonConverter names no schema",
        f"{REGISTRY}/framing.py",
        "return _in_json(data)",
        "return None",
        ("tests/connectors/registry/test_contents.py",),
    ),
    Mutant(
        "an id of Apicurio is one of Confluent's interface",
        f"{REGISTRY}/framing.py",
        'f"{OF_APICURIO}{int(match[1])}"',
        'f"{int(match[1])}"',
        ("tests/connectors/registry/test_contents.py",),
    ),
    Mutant(
        "an id that names two schemas names the first",
        f"{REGISTRY}/apicurio_schemas.py",
        "if len(set(texts)) > 1:",
        "if False:",
        IDS,
    ),
    Mutant(
        "what the ids of a connection are is not asked",
        f"{REGISTRY}/client_settings.py",
        "return (str(declared),)",
        "return IDS",
        IDS,
    ),
)
