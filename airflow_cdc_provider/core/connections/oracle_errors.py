"""Error numbers of Oracle, by what they mean. From its documentation; never seen from a real server."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import (
    CHANGED,
    DAMAGED,
    STATEMENT,
    UNKNOWN,
    VALUE,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)

CODE = re.compile(r"\b(?:ORA|DPY)-(\d+)")

ERRORS: Mapping[str, Meaning] = {
    **retry("28 54 60 1012 1013 1033 1034 1089 1090 1092 1555 3113 3114 3135 4068 8103 8177 12153 12170 12528 12537"),
    **retry("4005 4011 6005 12541 12547 12571 25408"),
    **retry("904 942", CHANGED),
    **limit("18 20 12516 12518 12519 12520 2391", "raise processes, sessions or SESSIONS_PER_USER"),
    **limit("2392 2393 2394 2395 2399 40 56720", "raise the limit of the login's profile or resource plan"),
    **limit("1652 1653 1654 30036 257 19809", "free space in the table space that the error names"),
    **limit("4030 4031", "raise the memory of the server"),
    **permanent("1722 1830 1839 1841 1843 1847 1858 1861 6502 12899 29275 932", VALUE),
    **permanent("1578 1410 8102", DAMAGED),
    **permanent("900 901 903 906 907 909 911 917 918 920 921 922 923 933 936 1747", STATEMENT),
    **permanent("12154 12505 12514", "correct host, port and service name of the Airflow connection"),
    **permission("1031 1017 1045 1005 28000 28001 41900"),
}


def meaning(text: str) -> Meaning:
    found = CODE.search(text)
    return ERRORS.get(str(int(found[1])), UNKNOWN) if found else UNKNOWN
