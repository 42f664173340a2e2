"""Texts of MySQL and MariaDB, in every character set."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MYSQL = "airflow_cdc_provider/connectors/sources/mysql"
CHARSETS = "tests/connectors/test_mysql_charsets.py"
COMPRESSED = "tests/connectors/test_mysql_compressed.py"

MYSQL_TEXTS = (
    Mutant(
        "one character of a character set is that of Python's codec",
        f"{MYSQL}/charset_tables.py",
        '"815f=5c"',
        '"815f=ff3c"',
        (CHARSETS,),
    ),
    Mutant(
        "the server's question mark counts as a character",
        f"{MYSQL}/copy.py",
        'IN_ITS_CHARSET = "CONVERT({0} USING binary)"',
        'IN_ITS_CHARSET = "CONVERT(CONVERT({0} USING utf8mb4) USING binary)"',
        (CHARSETS,),
    ),
    Mutant(
        "a text above the packet limit is NULL",
        f"{MYSQL}/copy.py",
        'IN_ITS_CHARSET = "CONVERT({0} USING binary)"',
        'IN_ITS_CHARSET = "CAST({0} AS BINARY)"',
        (CHARSETS,),
    ),
    Mutant(
        "two halves of a surrogate pair in ucs2 are one character",
        f"{MYSQL}/charsets.py",
        'if charset == "ucs2" and text and max(text) > "\\uffff":',
        "if not text and cell:",
        (CHARSETS,),
    ),
    Mutant(
        "a server that converts a character set otherwise is read by our table",
        f"{MYSQL}/server_charsets.py",
        "charset in BY_RULE or converts_alike(connection, charset)",
        "charset in BY_RULE or charset",
        (CHARSETS,),
    ),
    Mutant(
        "statements are read as utf8, whatever character set their session has",
        f"{MYSQL}/binlog.py",
        "statement_text(client, text)",
        "statement_text(0, text)",
        (CHARSETS,),
    ),
    Mutant(
        "a label that the catalog cannot show is a question mark",
        f"{MYSQL}/cells.py",
        'if any("?" in member for member in column.members):',
        "if not column.members:",
        (CHARSETS,),
    ),
    Mutant(
        "a compressed value has a zlib header",
        f"{MYSQL}/binlog.py",
        "-zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS",
        "zlib.MAX_WBITS",
        (COMPRESSED,),
    ),
)
