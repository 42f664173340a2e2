"""The parser of queries.

    SELECT fields | COUNT() FROM object [WHERE …] [ORDER BY field [ASC|DESC] [NULLS FIRST|LAST], …] [LIMIT n] [OFFSET n]

WHERE supports AND, OR, NOT, parentheses, = != < <= > >=, LIKE, IN, NOT IN, INCLUDES, EXCLUDES.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError

TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>'(?:[^'\\]|\\.)*')
      | (?P<moment>\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d))
      | (?P<date>\d{4}-\d\d-\d\d)
      | (?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<sign><=|>=|!=|<>|[=<>(),])
    )""",
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"', "%": "\\%", "_": "\\_"}
COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=", "LIKE")
LISTS = ("IN", "NOT IN", "INCLUDES", "EXCLUDES")


@dataclass(frozen=True)
class Literal:
    """``kind`` is string, moment, date, number, boolean or null; ``text`` of strings is without escapes."""

    kind: str
    text: str


@dataclass(frozen=True)
class Comparison:
    field: str
    operator: str
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Combination:
    """``operator`` is AND, OR, or NOT with one part."""

    operator: str
    parts: tuple[Comparison | Combination, ...]


Condition = Comparison | Combination


@dataclass(frozen=True)
class Ordering:
    field: str
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class Query:
    """``fields`` is empty for COUNT()."""

    fields: tuple[str, ...]
    object: str
    where: Condition | None = None
    orderings: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def counts(self) -> bool:
        return not self.fields


def malformed(message: str) -> ApiError:
    return ApiError(400, "MALFORMED_QUERY", message)


def parse(text: str) -> Query:
    """Raises ApiError MALFORMED_QUERY (400)."""
    if len(text) > 100_000:
        raise malformed("SOQL statements cannot be longer than 100000 characters.")
    return _Parser(text).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def query(self) -> Query:
        self._expect("SELECT")
        fields = self._fields()
        self._expect("FROM")
        name = self._word()
        where = self._condition() if self._accept("WHERE") else None
        orderings = self._orderings() if self._accept("ORDER") else ()
        limit = self._count() if self._accept("LIMIT") else None
        offset = self._count() if self._accept("OFFSET") else 0
        if self._at < len(self._tokens):
            raise malformed(f"unexpected token: '{self._tokens[self._at][1]}'")
        return Query(fields, name, where, orderings, limit, offset)

    def _fields(self) -> tuple[str, ...]:
        first = self._word()
        if first.upper() == "COUNT" and self._accept("("):
            self._expect(")")
            return ()
        fields = [first]
        while self._accept(","):
            fields.append(self._word())
        return tuple(fields)

    def _condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._accept("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Combination("OR", tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._term()]
        while self._accept("AND"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Combination("AND", tuple(parts))

    def _term(self) -> Condition:
        if self._accept("NOT"):
            return Combination("NOT", (self._term(),))
        if self._accept("("):
            inner = self._condition()
            self._expect(")")
            return inner
        field, operator = self._word(), self._operator()
        if operator not in LISTS:
            return Comparison(field, operator, (self._literal(),))
        self._expect("(")
        values = [self._literal()]
        while self._accept(","):
            values.append(self._literal())
        self._expect(")")
        return Comparison(field, operator, tuple(values))

    def _operator(self) -> str:
        operator = self._next().upper()
        if operator == "NOT":
            operator = f"NOT {self._next().upper()}"
        if operator not in (*COMPARISONS, *LISTS):
            raise malformed(f"unexpected token: '{operator}'")
        return "!=" if operator == "<>" else operator

    def _literal(self) -> Literal:
        if self._at >= len(self._tokens):
            raise malformed("unexpected end of query")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "string":
            return Literal(kind, re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text[1:-1]))
        if kind == "word" and text.upper() in ("TRUE", "FALSE"):
            return Literal("boolean", text.lower())
        if kind == "word" and text.upper() == "NULL":
            return Literal("null", "null")
        if kind in ("moment", "date", "number"):
            return Literal(kind, text)
        raise malformed(f"unexpected token: '{text}'")

    def _orderings(self) -> tuple[Ordering, ...]:
        self._expect("BY")
        found = [self._ordering()]
        while self._accept(","):
            found.append(self._ordering())
        return tuple(found)

    def _ordering(self) -> Ordering:
        field = self._word()
        descending = self._accept("DESC")
        if not descending:
            self._accept("ASC")
        nulls_last = False
        if self._accept("NULLS"):
            nulls_last = self._accept("LAST")
            if not nulls_last:
                self._expect("FIRST")
        return Ordering(field, descending, nulls_last)

    def _count(self) -> int:
        text = self._next()
        if not text.isdigit():
            raise malformed(f"unexpected token: '{text}'")
        return int(text)

    def _accept(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][1].upper() == word:
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise malformed(f"unexpected token: '{self._peek()[1]}', expected {word}")

    def _word(self) -> str:
        kind, text = self._peek()
        if kind != "word":
            raise malformed(f"unexpected token: '{text}'")
        return self._next()

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise malformed("unexpected token: '<EOF>'")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "<EOF>")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if match is None:
            raise malformed(f"line 1:{at} no viable alternative at character '{text[at]}'")
        tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return tokens
