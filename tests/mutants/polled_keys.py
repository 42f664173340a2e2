"""What a polled server shows about the uniqueness of keys and the time zone of its timestamps."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/jdbc_poll"
INDEXES = f"{FOLDER}/unique_indexes.py"
KEYS = ("tests/connectors/test_jdbc_poll_keys.py",)
UNENFORCED = ("tests/connectors/test_jdbc_poll_unenforced_keys.py",)
OFFSETS = ("tests/connectors/test_jdbc_poll_zones.py",)
ZONES = ("tests/connectors/test_jdbc_poll_zones_and_keys.py",)

POLLED_KEYS = (
    Mutant(
        "a second index is the remedy of a primary key that is not enforced",
        f"{FOLDER}/index_statements.py",
        "if described.unenforced_key and set(described.schema.key)",
        "if not described.schema.key and set(described.schema.key)",
        ("tests/connectors/test_jdbc_poll_index_statements.py",),
    ),
    Mutant(
        "each table asks for the zone of the server",
        f"{FOLDER}/server_zone.py",
        "if ASKED not in connection.info:",
        "if True:",
        OFFSETS,
    ),
    Mutant(
        "the description of one table asks for the keys of its schema",
        f"{FOLDER}/catalog.py",
        "unenforced_keys(connection, namespace, only)",
        'unenforced_keys(connection, namespace, "")',
        UNENFORCED,
    ),
    Mutant(
        "a run does not ask for the time zone of the server",
        f"{FOLDER}/source.py",
        "if refused_zone(connection, queries, self.options):",
        "if False:",
        ZONES,
    ),
    Mutant(
        "the offset of the summer is that of the server",
        f"{FOLDER}/server_zone.py",
        "now if system in PRESENT_ONLY else winter)",
        "now)",
        ZONES,
    ),
    Mutant(
        "the remedy is the offset of a summer",
        f"{FOLDER}/server_zone.py",
        'time_zone: "{offset_text(zone.least)}"',
        'time_zone: "{offset_text(zone.most)}"',
        OFFSETS,
    ),
    Mutant(
        "an offset of which rows are missed is read",
        f"{FOLDER}/server_zone.py",
        "options.time_zone != UTC and options.offset > zone.most and",
        "options.time_zone != UTC and options.offset > zone.most + timedelta(hours=1) and",
        OFFSETS,
    ),
    Mutant(
        "programs write in the zone of a server in UTC",
        f"{FOLDER}/server_zone.py",
        "options.offset > zone.most and not _is_utc(zone)",
        "options.offset > zone.most",
        OFFSETS,
    ),
    Mutant(
        "a run believes an offset because it is named",
        f"{FOLDER}/check.py",
        "in_utc = options.time_zone == UTC or",
        "in_utc = options.time_zone is not None or",
        ZONES,
    ),
    Mutant(
        "a unique index of nullable columns proves a key",
        f"{FOLDER}/unique_keys.py",
        "if not columns & described.nullable:",
        "if columns:",
        ZONES,
    ),
    Mutant(
        "a NOT NULL that was never validated holds for each row",
        f"{FOLDER}/catalog.py",
        "v.contype = 'n' AND NOT v.convalidated",
        "v.contype = 'n' AND NOT v.conislocal",
        ZONES,
    ),
    Mutant(
        "a unique index that was never finished proves a key",
        INDEXES,
        "i.indisunique AND i.indisvalid AND",
        "i.indisunique AND",
        ZONES,
    ),
    Mutant(
        "pages of SQLite compare keys in the collation of the column",
        f"{FOLDER}/select.py",
        'sa.collate(sa.type_coerce(column, sa.Text), "BINARY")',
        "column",
        KEYS,
    ),
    Mutant(
        "an index of another collation than its column proves a key",
        INDEXES,
        "COALESCE(o.collisdeterministic, true)",
        "true",
        ZONES,
    ),
    Mutant(
        "each key of an integer is a rowid of SQLite",
        f"{FOLDER}/catalog.py",
        "WHERE i.origin = 'pk'",
        "WHERE i.origin = 'none'",
        KEYS,
    ),
    Mutant(
        "a rowid of SQLite may be NULL",
        f"{FOLDER}/catalog.py",
        " and named not in rowids)",
        ")",
        KEYS,
    ),
    Mutant(
        "a partial index of SQLite proves a key",
        INDEXES,
        'i."unique" AND NOT i.partial',
        'i."unique"',
        KEYS,
    ),
    Mutant(
        "an expression is no column of its index, and the others prove a key",
        INDEXES,
        "if None not in found:",
        "if found:",
        ZONES,
    ),
    Mutant(
        "a disabled primary key of SQL Server is enforced",
        INDEXES,
        "i.is_primary_key = 1 AND i.is_disabled = 1",
        "i.is_primary_key = 1 AND i.is_disabled = 2",
        UNENFORCED,
    ),
    Mutant(
        "an index that only an advisor has made proves a key",
        INDEXES,
        " AND i.is_hypothetical = 0",
        "",
        UNENFORCED,
    ),
    Mutant(
        "a primary key of Oracle holds for rows with which it was never compared",
        INDEXES,
        " OR c.validated <> 'VALIDATED'",
        "",
        UNENFORCED,
    ),
    Mutant(
        "an unusable index of Oracle proves a key",
        INDEXES,
        "'FUNCTION-BASED%' AND NOT {UNUSABLE_IN_ORACLE}",
        "'FUNCTION-BASED%' AND NOT FALSE",
        UNENFORCED,
    ),
    Mutant(
        "a primary key that no server enforces proves itself",
        f"{FOLDER}/unique_keys.py",
        " and not described.unenforced_key\n",
        "\n",
        UNENFORCED,
    ),
    Mutant(
        "a primary key that some partitions lack is enforced",
        INDEXES,
        "i.indisprimary AND NOT i.indisvalid",
        "i.indisprimary AND NOT i.indislive",
        UNENFORCED,
    ),
)
