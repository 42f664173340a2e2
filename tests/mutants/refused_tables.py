"""Tables and columns that no run copies, and the login's rights."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MYSQL = "airflow_cdc_provider/connectors/sources/mysql"
POSTGRES = "airflow_cdc_provider/connectors/sources/postgres"
MYSQL_KINDS = "tests/connectors/test_mysql_kinds.py"
MYSQL_GRANTS = "tests/connectors/test_mysql_grants.py"
POSTGRES_KINDS = "tests/connectors/test_postgres_kinds.py"
CHANNELS = "tests/connectors/test_salesforce_check.py"
LISTED = "tests/core/test_listed_tables.py"
DECIDE = "tests/core/test_refused_tables.py"

REFUSED_TABLES = (
    Mutant(
        "a table with system versioning is left out in silence",
        f"{MYSQL}/catalog.py",
        '    "SEQUENCE": "a sequence",\n',
        '    "SEQUENCE": "a sequence",\n    "SYSTEM VERSIONED": "a table",\n',
        (MYSQL_KINDS,),
    ),
    Mutant(
        "a table with system versioning is copied",
        f"{MYSQL}/refused.py",
        "    if table.kind == VERSIONED:\n",
        "    if table.kind == BASE_TABLE and not table.engine:\n",
        (MYSQL_KINDS,),
    ),
    Mutant(
        "a while of system versioning is no hole",
        f"{MYSQL}/alterations.py",
        "            yield VERSIONED\n",
        "            yield from ()\n",
        (MYSQL_KINDS,),
    ),
    Mutant(
        "a table of other tables is copied",
        f"{MYSQL}/refused.py",
        "or table.engine.lower() not in LOGGING_ENGINES",
        "or not table.engine",
        (MYSQL_KINDS,),
    ),
    Mutant(
        "what a pattern matches beside tables is left out in silence",
        "airflow_cdc_provider/core/spec/selection.py",
        "if rule and is_pattern(rule.source) and others[name].within not in selected",
        "if rule and is_pattern(rule.source) and others[name].within in selected",
        (LISTED,),
    ),
    Mutant(
        "a copied table whose name a view has counts as dropped",
        "airflow_cdc_provider/core/decisions/listed_tables.py",
        "    if other:\n",
        "    if other and is_dropped:\n",
        (LISTED,),
    ),
    Mutant(
        "a table that the source refuses is copied",
        "airflow_cdc_provider/core/decisions/table_decisions.py",
        "    if table.refused and not _is_paused(table):",
        "    if table.refused and _is_paused(table):",
        (DECIDE,),
    ),
    Mutant(
        "a login with rights on some columns reads all from the binlog",
        f"{MYSQL}/decode.py",
        "        if task.table in self._settings.limited and may_hold_others(task):",
        "        if task.table in ():",
        (MYSQL_GRANTS,),
    ),
    Mutant(
        "rights on some columns are rights on the table",
        f"{MYSQL}/grants.py",
        "        return error_code(error) in MISSING_PRIVILEGE | {LOCKED}",
        "        return error_code(error) == LOCKED",
        (MYSQL_GRANTS,),
    ),
    Mutant(
        "a grant of columns counts as one of the table",
        f"{MYSQL}/grants.py",
        "SELECT(?:,|$))",
        "SELECT(?:,| |$))",
        (MYSQL_GRANTS,),
    ),
    Mutant(
        "the bytes of a bad record are kept although the login may not select all of them",
        f"{MYSQL}/decode.py",
        "withheld, mariadb = table in self._settings.limited,",
        "withheld, mariadb = False,",
        (MYSQL_GRANTS,),
    ),
    Mutant(
        "a copy needs a right on the whole table",
        f"{POSTGRES}/splits.py",
        'LOCKED = "SELECT FROM {name} LIMIT 0"',
        'LOCKED = "LOCK TABLE {name} IN ACCESS SHARE MODE"',
        (POSTGRES_KINDS,),
    ),
    Mutant(
        "a copy of some columns needs the system's columns",
        f"{POSTGRES}/copy.py",
        "select_list(schema, table.limited)",
        "select_list(schema)",
        (POSTGRES_KINDS,),
    ),
    Mutant(
        "a column without the right to select it is read from the stream",
        f"{POSTGRES}/schemas.py",
        "return not self.limited or",
        "return True or",
        (POSTGRES_KINDS,),
    ),
    Mutant(
        "a generated column is part of the key",
        f"{POSTGRES}/catalog.py",
        "if generated.isdisjoint(names)",
        "if names",
        (POSTGRES_KINDS,),
    ),
    Mutant(
        "a foreign table is left out in silence",
        f"{POSTGRES}/catalog.py",
        "TABLES = f\"c.relkind IN ('r', 'p', 'f')",
        "TABLES = f\"c.relkind IN ('r', 'p')",
        (POSTGRES_KINDS,),
    ),
    Mutant(
        "a table of MySQL without a key is read",
        f"{MYSQL}/refused.py",
        "        yield _missing_key(task.table)\n",
        "        pass\n",
        ("tests/connectors/test_mysql_check.py",),
    ),
    Mutant(
        "what a Salesforce channel omits is not asked",
        "airflow_cdc_provider/connectors/sources/salesforce/carried.py",
        "*carried_problems(task, may, channel, org.options.channel))",
        "*())",
        (CHANNELS,),
    ),
    Mutant(
        "an object that was added to its channel again has missed nothing",
        "airflow_cdc_provider/connectors/sources/salesforce/carried.py",
        "membership=channel.members[table],",
        "membership=table,",
        (CHANNELS,),
    ),
)
