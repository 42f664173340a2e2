"""The settings of every session with a SQL Server: change tables, copy, poll, comparison and check.

The server (``user options``), the database and the login's language can set each of them, so none may be inherited.
Isolation is set by each session. Not fixed: settings that only hold if the session sets them itself
(``DEADLOCK_PRIORITY``, ``NOEXEC``, ``FMTONLY``, ``PARSEONLY``, ``SHOWPLAN_*``, ``STATISTICS``, ``CONTEXT_INFO``,
``OFFSETS``), those of statements that no session runs (``ANSI_NULL_DFLT_*``, ``IDENTITY_INSERT``, ``XACT_ABORT``,
``REMOTE_PROC_TRANSACTIONS``), and ``QUERY_GOVERNOR_COST_LIMIT``, which only an administrator may change: its error
names it.
"""

from __future__ import annotations

SETTINGS: tuple[str, ...] = (
    "SET LANGUAGE us_english",
    "SET DATEFORMAT ymd",
    "SET DATEFIRST 7",
    "SET TEXTSIZE 2147483647",
    "SET ROWCOUNT 0",
    "SET LOCK_TIMEOUT -1",
    "SET ANSI_NULLS ON",
    "SET ANSI_PADDING ON",
    "SET ANSI_WARNINGS ON",
    "SET ARITHABORT ON",
    "SET ARITHIGNORE OFF",
    "SET CONCAT_NULL_YIELDS_NULL ON",
    "SET QUOTED_IDENTIFIER ON",
    "SET NUMERIC_ROUNDABORT OFF",
    "SET CURSOR_CLOSE_ON_COMMIT OFF",
    "SET NOCOUNT ON",
    "SET FORCEPLAN OFF",
)
"""The language comes first, because it sets the format and the first day of dates, too."""

AUTOCOMMIT = "SET IMPLICIT_TRANSACTIONS OFF"
"""For a driver that does not set this itself."""


def settings_batch() -> str:
    return "; ".join(SETTINGS)
