"""Which statements Redshift has, of those that PostgreSQL accepts: a reading of its Database Developer Guide (SQL
commands; Amazon Redshift and PostgreSQL; SQL functions; data types). It has what a replication target needs, and
refuses everything else, so that a statement is either one that the guide shows or an error of a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Kind(StrEnum):
    NAME = "quoted name"
    WORD = "word"
    NUMBER = "number"
    TEXT = "literal"
    SIGN = "operator"


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str

    @property
    def word(self) -> str:
        """In capitals; a sign is itself; empty for names and literals."""
        return self.text.upper() if self.kind in (Kind.WORD, Kind.SIGN) else ""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<NAME>"(?:[^"]|"")+")
    |(?P<TEXT>'(?:[^'\\]|''|\\.)*')
    |(?P<NUMBER>\d+(?:\.\d+)?)
    |(?P<WORD>[A-Za-z_][A-Za-z0-9_]*|\$\d+)
    |(?P<SIGN>--|->>?|::|<>|!=|<=|>=|\|\||[-+*/%=<>(),.])""",
    re.VERBOSE,
)

FUNCTIONS = words_of(
    """CAST COALESCE COUNT MAX MIN OCTET_LENGTH SUBSTR SUBSTRING TO_CHAR TO_HEX FROM_HEX JSON_PARSE JSON_SERIALIZE
    STRPOS NVL LEN"""
)
LEADER_FUNCTIONS = words_of("""PG_LAST_UNLOAD_COUNT DB_COLLATION PG_TERMINATE_BACKEND CURRENT_SETTING""")
"""They run on the leader node: in no query of a user's table."""

TYPES = words_of(
    """SMALLINT INTEGER BIGINT DECIMAL REAL BOOLEAN VARCHAR DATE TIMESTAMP TIMESTAMPTZ SUPER VARBYTE REGCLASS"""
)
KEYWORDS_BEFORE_PARENTHESIS = words_of(
    """IN AND OR NOT EXISTS WHERE ON SELECT FROM AS UNION ALL VALUES USING KEY BY THEN ELSE WHEN JOIN DISTKEY SORTKEY
    UNLOAD INTO SET CASE"""
)
REFUSED_SEQUENCES = {
    ("IS", "DISTINCT"): "IS DISTINCT FROM",
    ("IS", "NOT", "DISTINCT"): "IS NOT DISTINCT FROM",
    ("ON", "CONFLICT"): "ON CONFLICT",
    ("ON", "DUPLICATE"): "ON DUPLICATE KEY",
    ("DISTINCT", "ON"): "DISTINCT ON",
    ("FOR", "UPDATE"): "FOR UPDATE",
    ("FOR", "SHARE"): "FOR SHARE",
    ("EXCEPT", "ALL"): "EXCEPT ALL",
    ("INTERSECT", "ALL"): "INTERSECT ALL",
    ("ROW", "("): "row constructors",
    ("FILTER", "("): "FILTER of an aggregate",
    ("(", "VALUES"): "VALUES as a table",
    ("FROM", "VALUES"): "VALUES as a table",
    ("SET", "LOCAL"): "SET LOCAL, which is not needed",
    ("FROM", "ONLY"): "inheritance",
    ("WITH", "TIES"): "WITH TIES",
}
REFUSED_WORDS = {
    "--": "comments, which this reading leaves out",
    "->": "operators of JSON",
    "->>": "operators of JSON",
    "RETURNING": "RETURNING",
    "LATERAL": "LATERAL",
    "ARRAY": "arrays",
    "INDEX": "indexes",
    "UNLOGGED": "unlogged tables",
    "TABLESPACE": "tablespaces",
    "INHERITS": "inheritance",
    "PARTITION": "partitions of tables",
    "CHECK": "check constraints",
    "SAVEPOINT": "savepoints",
    "NOWAIT": "NOWAIT",
    "TEXT": "TEXT, which becomes VARCHAR(256)",
    "BPCHAR": "BPCHAR, which becomes CHAR(256)",
    "BYTEA": "BYTEA",
    "JSON": "JSON",
    "JSONB": "JSONB",
    "UUID": "UUID",
    "SERIAL": "SERIAL",
    "SEQUENCE": "sequences",
    "TRUNCATE": "TRUNCATE in a transaction, which it commits",
    "VACUUM": "VACUUM in a transaction",
    "MERGE": "MERGE, which has one action for a matched row",
    "COLLATE": "COLLATE with a collation of PostgreSQL",
    "GENERATE_SERIES": "generate_series",
}
PARAMETERS = words_of(
    """cast_super_null_on_error datestyle describe_field_name_in_uppercase downcase_delimited_identifier
    enable_case_sensitive_identifier enable_case_sensitive_super_attribute enable_numeric_rounding
    error_on_nondeterministic_update extra_float_digits json_serialization_enable
    json_serialization_parse_nested_strings navigate_super_null_on_error parse_super_null_on_error query_group
    search_path statement_timeout timezone"""
)
"""Of SET, from the configuration reference."""
OF_POSTGRES = words_of("datestyle extra_float_digits search_path statement_timeout timezone")
"""Those that PostgreSQL has, too."""

LONGEST_NAME = 127
NAME = r'(?:"(?:[^"]|"")+"(?:\."(?:[^"]|"")+")?)'
COLUMNS = rf"\({NAME}(?:, {NAME})*\)"
ROLE = r"IAM_ROLE (?:default|'arn:aws[\w-]*:iam::\d{12}:role/[\w+=,.@/-]+')"
FORMS = {
    "SET": re.compile(r"SET (\w+) TO ('[^']*'|\d+)"),
    "BEGIN": re.compile(r"BEGIN( TRANSACTION)?", re.IGNORECASE),
    "COMMIT": re.compile(r"COMMIT", re.IGNORECASE),
    "ROLLBACK": re.compile(r"ROLLBACK", re.IGNORECASE),
    "LOCK": re.compile(rf"LOCK {NAME}(, {NAME})*"),
    "DROP": re.compile(rf"DROP (TABLE|VIEW) (IF EXISTS )?{NAME}"),
    "ANALYZE": re.compile(rf"ANALYZE {NAME}"),
    "COMMENT": re.compile(rf"COMMENT ON TABLE {NAME} IS '[^']*'"),
    "ALTER": re.compile(rf"ALTER TABLE {NAME} (RENAME TO {NAME}|ADD COLUMN {NAME} [A-Z ]+(\(\d+(,\d+)?\))?)"),
    "GRANT": re.compile(rf"GRANT [A-Z]+ ON TABLE {NAME} TO (PUBLIC|((ROLE|GROUP) )?{NAME})( WITH GRANT OPTION)?"),
    "COPY": re.compile(rf"COPY {NAME} FROM 's3://[^']+' {ROLE} FORMAT AS PARQUET MANIFEST"),
    "UNLOAD": re.compile(
        rf"UNLOAD \('.*'\) TO 's3://[^']+' {ROLE} FORMAT AS PARQUET MANIFEST MAXFILESIZE \d+ MB", re.DOTALL
    ),
    "CREATE": re.compile(
        rf"CREATE TABLE (IF NOT EXISTS )?{NAME} \(.*\)( BACKUP NO)?"
        rf"( DISTSTYLE (AUTO|EVEN|ALL|KEY DISTKEY \({NAME}\)))?( SORTKEY AUTO| COMPOUND SORTKEY {COLUMNS})?"
        rf"|CREATE OR REPLACE VIEW {NAME} AS SELECT .*",
        re.DOTALL,
    ),
    "INSERT": re.compile(rf"INSERT INTO {NAME} {COLUMNS} (VALUES \(.*\)|SELECT .*)", re.DOTALL),
    # Its table has no alias.
    "DELETE": re.compile(rf"DELETE FROM {NAME}( USING {NAME}( AS \w+)?)?( WHERE .*)?", re.DOTALL),
    "UPDATE": re.compile(rf"UPDATE {NAME}( AS \w+)? SET {NAME} = .*", re.DOTALL),
    "SELECT": re.compile(r"SELECT .*", re.DOTALL),
}


def refusal(statement: str) -> str:
    """Why Redshift would not take the statement; empty if it would."""
    text = statement.strip()
    first = text.split(maxsplit=1)[0].upper() if text else ""
    if first not in FORMS:
        return f"no statement of this reading starts with {first or 'nothing'}"
    if not FORMS[first].fullmatch(text):
        return f"{first} has another form"
    tokens = list(tokenize(text))
    found = next(_refusals(tokens), "")
    if found:
        return found
    if first == "SET":
        name = tokens[1].text
        return "" if name in PARAMETERS else f"no configuration parameter {name}"
    if first == "UNLOAD":
        return refusal(unquoted(next(token.text for token in tokens if token.kind is Kind.TEXT)))
    return ""


def tokenize(text: str) -> Iterator[Token]:
    """Raises ValueError for what is no token of this reading: comments, dollar quotes, operators of other types."""
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"no token: {text[position : position + 20]}")
        if match.lastgroup and match.lastgroup != "space":
            yield Token(Kind[match.lastgroup], match[0])
        position = match.end()


def unquoted(literal: str) -> str:
    """The text of a literal; a backslash is an escape."""
    return re.sub(r"\\(.)|''", lambda found: found[1] or "'", literal[1:-1], flags=re.DOTALL)


def _refusals(tokens: list[Token]) -> Iterator[str]:
    words = [token.word for token in tokens]
    for word, what in REFUSED_WORDS.items():
        if word in words:
            yield f"there is no {what}"
    for sequence, what in REFUSED_SEQUENCES.items():
        if any(tuple(words[n : n + len(sequence)]) == sequence for n in range(len(words))):
            yield f"there is no {what}"
    yield from _names(tokens)
    yield from _functions(tokens)
    yield from _types(tokens)
    yield from _definitions(tokens)
    yield from _subqueries(words)


def _names(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.kind is Kind.NAME and token.text != token.text.lower() and token.text.isascii():
            yield f"{token.text} is folded to lower case"
        if token.kind is Kind.NAME and len(token.text.encode()) - 2 > LONGEST_NAME:
            yield "a name is longer than 127 bytes"


def _functions(tokens: list[Token]) -> Iterator[str]:
    called = {
        one.word
        for one, other in pairwise(tokens)
        if other.text == "(" and one.kind is Kind.WORD and one.word not in KEYWORDS_BEFORE_PARENTHESIS | TYPES
    }
    if unknown := called - FUNCTIONS - LEADER_FUNCTIONS:
        yield f"no function {', '.join(sorted(unknown))}"
    if called & LEADER_FUNCTIONS and any(token.word == "FROM" for token in tokens):
        yield "a function of the leader node in a query of tables"


def _types(tokens: list[Token]) -> Iterator[str]:
    for number, token in enumerate(tokens[:-1]):
        following = tokens[number + 1].word
        is_cast = token.text == "::" or (token.word == "AS" and _is_in_cast(tokens, number))
        if is_cast and following not in TYPES and following != "DOUBLE":
            yield f"no type {following}"


def _definitions(tokens: list[Token]) -> Iterator[str]:
    """The types of columns in CREATE TABLE and ADD COLUMN."""
    words = [token.word for token in tokens]
    if words[:2] != ["CREATE", "TABLE"] and "COLUMN" not in words:
        return
    for before, name, kind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_definition = name.kind is Kind.NAME and before.word in ("(", ",", "COLUMN") and kind.kind is Kind.WORD
        if is_definition and kind.word not in TYPES and kind.word != "DOUBLE":
            yield f"no type {kind.word}"


def _is_in_cast(tokens: list[Token], number: int) -> bool:
    depth = 0
    for index in range(number - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(tokens[index].text, 0)
        if depth < 0:
            return tokens[index - 1].word == "CAST"
    return False


def _subqueries(words: list[str]) -> Iterator[str]:
    """What Redshift cannot decorrelate surely has an OR between the two sides."""
    for number, word in enumerate(words):
        if word != "EXISTS" or words[number - 1 : number] == ["IF"] or words[number + 1 : number + 2] != ["("]:
            continue
        depth, inside = 0, []
        for following in words[number + 1 :]:
            depth += {"(": 1, ")": -1}.get(following, 0)
            if depth == 0:
                break
            inside.append(following)
        if "OR" in inside:
            yield "a correlated subquery with OR"
