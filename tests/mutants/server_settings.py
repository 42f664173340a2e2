"""Settings of MySQL and MariaDB that decide what a copy sees, and how rows are logged."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MYSQL = "airflow_cdc_provider/connectors/sources/mysql"
COMMIT_ORDER = "tests/connectors/test_mysql_commit_order.py"
KINDS = "tests/connectors/test_mysql_kinds.py"

SERVER_SETTINGS = (
    Mutant(
        "a fraction in the format of old tables is read like any other",
        f"{MYSQL}/types.py",
        "return column.fraction > 0 and OLD_FORMAT in column.column_type",
        "return column.fraction > 6",
        (KINDS,),
    ),
    Mutant(
        "a copy begins although commits cannot be waited for",
        f"{MYSQL}/copy.py",
        "    require_commit_order(connection, client)\n    end =",
        "    end =",
        (COMMIT_ORDER,),
    ),
)
