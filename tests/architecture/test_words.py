"""The code speaks the language of docs/glossary.md: words for which it has better ones are in no name and no text."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ROOMS = ("airflow_cdc_provider", "spark_jobs", "tests")

NAMES = """
told untold retold noted news said road roads paper standing obstacle obstacles stray strays story stories share shares
look looks here nobody whoever tell tells knows place places held
"""
TEXTS = "told untold retold noted nobody whoever tells knows obstacle obstacles stray strays"
IN_NAMES, IN_TEXTS = frozenset(NAMES.split()), frozenset(TEXTS.split())

NAMES_OF_STORED_FORMATS = frozenset({"place", "held", "max_share"})
"""Fields of files and keys of the YAML."""

OTHER_NAMES = frozenset({"tell", "in_place", "doubly_held", "_share_a_table"})
"""A method of files, changes in place, keys that two rows hold, tables in common."""

TEXTS_OF_STORED_FORMATS = frozenset({'"untold"'})
"""A kind of hole in manifests."""

OTHER_TEXTS = frozenset({'"nobody"'})
"""A user of the system."""

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
WORD = re.compile(r"[A-Za-z]+")


def sources() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            if path != Path(__file__):
                yield str(path.relative_to(REPOSITORY)), path.read_text()


def tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(text).readline)


def test_names_are_those_of_the_field() -> None:
    found = [
        f"{file}:{token.start[0]}: {token.string}"
        for file, text in sources()
        for token in tokens(text)
        if token.type == tokenize.NAME
        and token.string not in NAMES_OF_STORED_FORMATS | OTHER_NAMES
        and any(part.lower() in IN_NAMES for part in PART.findall(token.string))
    ]
    assert not found, "\n".join(found)


def test_texts_and_comments_are_plain_technical_english() -> None:
    found = [
        f"{file}:{token.start[0]}: {token.string[:80]}"
        for file, text in sources()
        for token in tokens(text)
        if token.type in (tokenize.STRING, tokenize.COMMENT)
        and token.string not in TEXTS_OF_STORED_FORMATS | OTHER_TEXTS
        and not IN_TEXTS.isdisjoint(word.lower() for word in WORD.findall(token.string))
    ]
    assert not found, "\n".join(found)


def test_the_glossary_is_short() -> None:
    rows = [line for line in (REPOSITORY / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert 0 < len([row for row in rows if not row.startswith("| term ")]) <= 60


def test_pages_are_plain_technical_english() -> None:
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    found = [
        f"{page.name}:{number}: {line[:100]}"
        for page in pages
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if "`" not in line and not IN_TEXTS.isdisjoint(word.lower() for word in WORD.findall(line))
    ]
    assert not found, "\n".join(found)
