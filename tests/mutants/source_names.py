"""Names of source tables: dots, quotes and what they are confused with."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PROVIDER = "airflow_cdc_provider"
MYSQL = f"{PROVIDER}/connectors/sources/mysql"
POSTGRES = f"{PROVIDER}/connectors/sources/postgres"
DECODERS = f"{PROVIDER}/connectors/decoders"
NAMES = "tests/core/test_source_names.py"
RULES = "tests/core/test_dotted_names.py"
FEEDS = "tests/connectors/formats/test_dotted_names.py"
ON_MYSQL = "tests/connectors/test_mysql_dotted_names.py"
ON_POSTGRES = "tests/connectors/test_postgres_dotted_names.py"

SOURCE_NAMES = (
    Mutant(
        "a part with a dot is not quoted",
        f"{PROVIDER}/core/table/source_names.py",
        'if "." in text or text.startswith',
        "if text.startswith",
        (NAMES, RULES),
    ),
    Mutant(
        "a part that begins with a quote is not quoted",
        f"{PROVIDER}/core/table/source_names.py",
        """ or text.startswith('"') else""",
        " else",
        (NAMES,),
    ),
    Mutant(
        "a table is taken for the copy of another table",
        f"{PROVIDER}/core/table/source_names.py",
        "return text if source_table(text) == text else ",
        "return text if text else ",
        (NAMES,),
    ),
    Mutant(
        "a quote in a part is not doubled",
        f"{PROVIDER}/core/table/source_names.py",
        """ + text.replace('"', '""') + """,
        " + text + ",
        (NAMES,),
    ),
    Mutant(
        "a shell removes the quotes",
        f"{PROVIDER}/core/table/source_names.py",
        "    return quote(name)\n",
        "    return name or quote(name)\n",
        (NAMES,),
    ),
    Mutant(
        "PostgreSQL's catalog is asked for names and schemas of any table",
        f"{POSTGRES}/table_names.py",
        '"(n.nspname, c.relname) IN (SELECT * FROM unnest(%(schemas)s::text[], %(names)s::text[]))"',
        '"(n.nspname = ANY (%(schemas)s::text[]) OR c.relname = ANY (%(names)s::text[]))"',
        ("tests/connectors/test_postgres_publication.py", ON_POSTGRES),
    ),
    Mutant(
        "names in MySQL's binlog have no quotes",
        f"{MYSQL}/table_map.py",
        "table_name(database, name)",
        'f"{database}.{name}"',
        (ON_MYSQL,),
    ),
    Mutant(
        "a dropped database is one whose name begins as its own",
        f"{MYSQL}/statements.py",
        "    return table_name(parts_of(table)[0].lower())\n",
        '    return table_name(table.strip(chr(34)).partition(".")[0].lower())\n',
        (ON_MYSQL,),
    ),
    Mutant(
        "a right on a database is one on a database with a longer name",
        f"{MYSQL}/grants.py",
        'return f"{database}\\0{table}"',
        'return f"{database}.{table}"',
        ("tests/connectors/test_mysql_grants.py",),
    ),
    Mutant(
        "InnoDB's names have no quotes",
        f"{MYSQL}/identities.py",
        "    return table_name(*(",
        '    return ".".join((',
        (ON_MYSQL, "tests/connectors/test_mysql_table_renames.py"),
    ),
    Mutant(
        "SQL Server's names have no quotes",
        f"{PROVIDER}/connectors/sources/sqlserver/catalog.py",
        "TableSchema(table_name(namespace, name), ",
        'TableSchema(f"{namespace}.{name}", ',
        ("tests/connectors/test_sqlserver_dotted_names.py",),
    ),
    Mutant(
        "Debezium's names have no quotes",
        f"{DECODERS}/debezium/source_block.py",
        "table = table_name(*parts)",
        'table = ".".join(parts)',
        (FEEDS,),
    ),
    Mutant(
        "a topic of two tables means the first one",
        f"{DECODERS}/common/message.py",
        'return "" if len(named) > 1 else ',
        "return ",
        (FEEDS,),
    ),
    Mutant(
        "Datastream's names have no quotes",
        f"{DECODERS}/datastream/envelope.py",
        "    return table_name(*map(str, parts))",
        '    return ".".join(map(str, parts))',
        (FEEDS,),
    ),
    Mutant(
        "a folder of YDB with a dot is two parts",
        f"{DECODERS}/ydb/decode.py",
        'return table_name(topic.strip("/").rpartition("/")[0])',
        'return topic.strip("/").rpartition("/")[0]',
        (FEEDS,),
    ),
    Mutant(
        "a rule without quotes does not name the tables that it may mean",
        f"{PROVIDER}/core/spec/no_such_tables.py",
        "if without_quotes(name) == without_quotes(table)",
        "if name == without_quotes(table)",
        (RULES,),
    ),
    Mutant(
        "placeholders are cut at dots",
        f"{PROVIDER}/core/spec/routing.py",
        "reversed(parts_of(table))",
        'reversed(table.split("."))',
        (RULES,),
    ),
)
