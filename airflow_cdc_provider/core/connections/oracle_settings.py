"""The settings of every session with an Oracle database that is polled.

The server, its logon triggers and the environment of the client (``NLS_LANG``) can set each of them, so none may be
inherited. Limits are those of profiles and of the resource manager, which a session cannot change: their errors name
them.
"""

from __future__ import annotations

SETTINGS: tuple[str, ...] = (
    "ALTER SESSION SET NLS_LANGUAGE = 'AMERICAN'",
    "ALTER SESSION SET NLS_TERRITORY = 'AMERICA'",
    "ALTER SESSION SET NLS_CALENDAR = 'GREGORIAN'",
    "ALTER SESSION SET NLS_COMP = 'BINARY'",
    "ALTER SESSION SET NLS_SORT = 'BINARY'",
    "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'",
    "ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD\"T\"HH24:MI:SS'",
    "ALTER SESSION SET NLS_TIMESTAMP_FORMAT = 'YYYY-MM-DD\"T\"HH24:MI:SS.FF6'",
    "ALTER SESSION SET NLS_TIMESTAMP_TZ_FORMAT = 'YYYY-MM-DD\"T\"HH24:MI:SS.FF6TZH:TZM'",
    "ALTER SESSION SET TIME_ZONE = '+00:00'",
    "ALTER SESSION SET CURSOR_SHARING = EXACT",
    "ALTER SESSION SET ISOLATION_LEVEL = READ COMMITTED",
)
"""Language and territory come first, because they set the others, too."""
