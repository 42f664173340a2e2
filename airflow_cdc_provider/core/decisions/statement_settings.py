"""The settings with which Spark reads our statements.

A statement contains names, values and comments of the source. With another setting Spark replaces parts of them
(``${env:HOME}``), reads them as something else (escapes, quotes, patterns), or compares or converts values otherwise.
So each session sets all of them, and a definition may set none.
"""

from __future__ import annotations

STATEMENT_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    # A value that does not fit its type must fail the job; otherwise it becomes NULL.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
}

SETTINGS_LIKE_THESE = ("spark.sql.ansi.*", "spark.sql.legacy.*", "spark.sql.parser.*", "spark.sql.variable.*")
