"""SQL that compares texts by their code points, whatever the encoding of the database. Text only."""

from __future__ import annotations

UTF8 = "UTF8"


def ordered(text: str, encoding: str) -> str:
    """An SQL text in the order of its code points, which is that of its UTF-8 bytes. An index may serve it where the
    database is in UTF-8."""
    return f'{text} COLLATE "C"' if encoding == UTF8 else f"convert_to({text}, 'UTF8')"


def ordered_literal(value: str, encoding: str) -> str:
    """To be compared with ``ordered``. The encoding of the database may lack characters of ``value``."""
    return quoted_text(value) if encoding == UTF8 else f"decode('{value.encode().hex()}', 'hex')"


def quoted_text(value: str) -> str:
    """A literal that does not depend on ``standard_conforming_strings``."""
    mark = "E" if "\\" in value else ""
    return mark + "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
