"""What a table of MySQL or MariaDB has that a new copy with its name would not have.

Privileges, also those on columns, and views are bound to the name. Indexes are lost, as the guide says: a copy is as
right without them.
"""

from __future__ import annotations

from typing import Any

DEPENDENTS = """
SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers
WHERE event_object_schema = %(schema)s AND event_object_table = %(table)s
UNION SELECT CONCAT('constraint ', constraint_name, ' of table ', table_name) FROM information_schema.key_column_usage
WHERE referenced_table_schema = %(schema)s AND referenced_table_name = %(table)s
UNION SELECT CONCAT('constraint ', constraint_name, ' of table ', table_name)
FROM information_schema.table_constraints
WHERE table_schema = %(schema)s AND table_name = %(table)s AND constraint_type IN ('FOREIGN KEY', 'CHECK')
UNION SELECT CONCAT('computed column ', column_name) FROM information_schema.columns
WHERE table_schema = %(schema)s AND table_name = %(table)s AND generation_expression <> ''
UNION SELECT CONCAT('partition ', MIN(partition_name)) FROM information_schema.partitions
WHERE table_schema = %(schema)s AND table_name = %(table)s AND partition_name IS NOT NULL HAVING COUNT(*) > 0
"""


def dependents(cursor: Any, schema: str, table: str) -> list[str]:
    cursor.execute(DEPENDENTS, {"schema": schema, "table": table})
    return sorted(str(found) for (found,) in cursor.fetchall())
