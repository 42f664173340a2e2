"""Text of others in Markdown."""

from __future__ import annotations


def code(text: str) -> str:
    """A code span for untrusted text: none of it is rendered as Markdown or HTML, also inside a table."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return "`" + printable.replace("`", "'").replace("|", "\\|") + "`"
