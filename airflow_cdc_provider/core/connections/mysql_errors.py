"""Error numbers of MySQL and MariaDB, by what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import (
    ATTACHED,
    CHANGED,
    CONSTRAINT,
    DAMAGED,
    GENERATED,
    PARTITION,
    RESUME,
    STATEMENT,
    UNIQUE,
    UNKNOWN,
    ErrorClass,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)

COLUMNS = "the table has more columns, or longer ones, than InnoDB can hold: leave some out with `columns.exclude`"
KEYS = "leave the column out with `columns.exclude`, or give the table a shorter key"
NO_KEY = "SET GLOBAL sql_require_primary_key = OFF, or innodb_force_primary_key: staging tables have no key"
NO_DEFAULT = f"give the column that the server names a default, or drop it: it is none of the copy; {RESUME}"
TEXTS = "correct the text at the source, or leave its column out: `columns.exclude`; then `airflow cdc resume`"

CONSTRAINTS: Mapping[str, Meaning] = {
    **permanent("1216 1217 1369 1451 1452 3819 4025", CONSTRAINT),
    **permanent("1062 1169 1586 1761 1762", UNIQUE),
}
"""Of constraints that rows violate."""

ERRORS: Mapping[str, Meaning] = {
    **retry("0 1050 1053 1060 1061 1077 1079 1080 1152 1158 1159 1160 1161 1184 1205 1213 1236 1317 1412 1615 1927"),
    **retry("2003 2006 2013 2014 2055 3168 3169 3572"),
    **retry("1032 1054 1146 1051 1109", CHANGED),
    **limit("1040 1203", "raise max_connections or max_user_connections of the server"),
    **limit("1226", "ALTER USER … WITH a higher limit: the account has used up one of its own"),
    **limit("1021 1114", "free disk space on the server, or raise the limit of its table space"),
    **limit("1037 1038 1041", "raise the memory of the server: sort_buffer_size, or what the error names"),
    **limit("1104", "raise max_join_size of the server"),
    **limit("3024 1969", "raise the time limit of statements that the account or the server has"),
    **limit("1206 1637", "let the server hold more locks or transactions: innodb_buffer_pool_size"),
    **limit("1290 1792 1836", "connect to a server that accepts writes: it is read-only, or has the option named"),
    **permanent("1153", "raise max_allowed_packet of the server"),
    **permanent("1117 1118 1074", COLUMNS),
    **permanent("1059 1070 1071 1113 1166 1170", KEYS),
    **permanent("3750 1173", NO_KEY),
    **permanent("1300 1366 1267 1270 1271", TEXTS),
    **CONSTRAINTS,
    **permanent("1172 1242 1336 1339 1365 1411 1415 1422 1423 1424 1442 1449 1456 1644 1690", ATTACHED),
    **permanent("1364", NO_DEFAULT),
    **permanent("1906 3105", GENERATED),
    **permanent("1526 1748", PARTITION),
    **permanent("1034 1035 1194 1195", DAMAGED),
    **permanent("1049", "name a database that exists in the Airflow connection"),
    **permanent("1064 1115 1128 1193 1231 1235 1273 1286 1295 1305", STATEMENT),
    **permission("1044 1045 1142 1143 1227 1370 1410 1698 1820 1862 3118 3878 3879 4151"),
}

CREATE_FAILED = "1005"
ENGINE_ERROR = re.compile(r"errno: (\d+)")
ENGINE_ERRORS: Mapping[str, Meaning] = {
    **permanent("139 140 185", COLUMNS),
    **permanent("121 150", STATEMENT),
    **permission("13"),
    **limit("28", "free disk space on the server"),
}
"""Of the storage engine, in the text of an error that a table could not be created."""


def meaning(code: int, text: str) -> Meaning:
    if str(code) == CREATE_FAILED and (found := ENGINE_ERROR.search(text)):
        return ENGINE_ERRORS.get(found[1], UNKNOWN)
    return ERRORS.get(str(code), UNKNOWN)


MISSING_PRIVILEGE = frozenset(int(code) for code, one in ERRORS.items() if one.kind is ErrorClass.PERMISSION)
