"""Text of others in Markdown."""

from __future__ import annotations

from airflow_cdc_provider.core.printable import printable


def code(text: str) -> str:
    """A code span for untrusted text: none of it is rendered as Markdown or HTML, also inside a table."""
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`"
