"""Text of the server's character sets, converted to Unicode as the server converts it. Pure.

A character set of Unicode is decoded by its rule. Each other one has a table of all its codes: a codec of Python with
the differences that ``charset_tables`` lists, which were found by asking a server for every code.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from zlib import crc32

from airflow_cdc_provider.connectors.sources.mysql.charset_tables import TABLES

Decode = Callable[[bytes], str]
Form = tuple[bytes, ...]
"""Codes of one length: per byte, the first and the last value of each of its ranges."""

UNICODE = {
    "gb18030": "gb18030",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8": "utf_8",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}
OF_TWO_BYTES = frozenset({"ucs2", "utf8", "utf8mb3"})
"""Character sets of Unicode without the characters above U+FFFF, which have a code of four bytes elsewhere."""

BY_RULE = frozenset(UNICODE) - {"gb18030"}
"""Character sets whose conversion is that of the Unicode standard: no server has another one."""

ASCII, EUC = b"\x00\x7f", b"\xa1\xfe"
SHIFT_JIS: tuple[Form, ...] = ((b"\x00\x7f\xa1\xdf",), (b"\x81\x9f\xe0\xfc", b"\x40\x7e\x80\xfc"))
EUC_JP: tuple[Form, ...] = ((ASCII,), (b"\x8e\x8e", b"\xa1\xdf"), (EUC, EUC), (b"\x8f\x8f", EUC, EUC))
FORMS: Mapping[str, tuple[Form, ...]] = {
    "big5": ((ASCII,), (b"\xa1\xf9", b"\x40\x7e\xa1\xfe")),
    "cp932": SHIFT_JIS,
    "eucjpms": EUC_JP,
    "euckr": ((ASCII,), (b"\x81\xfe", b"\x41\x5a\x61\x7a\x81\xfe")),
    "gb2312": ((ASCII,), (b"\xa1\xf7", EUC)),
    "gbk": ((ASCII,), (b"\x81\xfe", b"\x40\x7e\x80\xfe")),
    "sjis": SHIFT_JIS,
    "ujis": EUC_JP,
}
ONE_BYTE: tuple[Form, ...] = ((b"\x00\xff",),)
UNDEFINED, REPLACEMENT = "\ufffe", "\ufffd"
NO_CHARACTER = "?"
"""What the server makes of a code without a character."""

OF_GB18030 = frozenset({248, 249, 250})
"""Numbers of MySQL's collations."""

CHARACTERS_AT_ONCE = 1 << 17
CORRECT_TEXT = "correct the text at the source, or leave out the column"


class NoText(ValueError):
    """Bytes that cannot be converted to text. ``str()`` says why and quotes nothing."""


def has_conversion(charset: str) -> bool:
    try:
        decoder(charset)
    except NoText:
        return False
    return True


@cache
def decoder(charset: str) -> Decode:
    """A function from the bytes of a text to the text. It raises NoText for a code without a character, and this one
    for a character set without a conversion."""
    if charset in UNICODE:
        return _unicode(charset)
    if charset not in TABLES:
        name = f"the character set {charset}" if charset else "an unknown character set"
        raise NoText(f"a text in {name}, of which there is no conversion")
    table = conversion(charset)
    return _of_codes(charset, table) if charset in FORMS else _of_bytes(charset, table)


def statement_text(collation: int, data: bytes) -> str:
    """The text of a statement. ``collation``: that of the client. Binary values in it may be no characters."""
    charset = next((name for name, table in TABLES.items() if collation in table.collations), "")
    if not charset:
        return data.decode("gb18030" if collation in OF_GB18030 else "utf_8", "replace")
    table = conversion(charset)
    return "".join(table.get(code, REPLACEMENT) for code in _split(charset, data))


def codes_of(charset: str) -> Iterator[bytes]:
    """Every code that a text may have, in order, whether it has a character or not."""
    for form in FORMS.get(charset, ONE_BYTE):
        yield from map(bytes, product(*map(_values, form)))


@cache
def conversion(charset: str) -> Mapping[bytes, str]:
    """Code → character, of the codes that have one. Raises NoText if this Python's codec is another one."""
    table = TABLES[charset]
    codes = list(codes_of(charset))
    found = {code: text for code in codes if (text := by_codec(code, table.codec))}
    for code, character in _differences(codes, table.differences):
        found.pop(code, None)
        if character:
            found[code] = character
    if crc32("".join(found.get(code, NO_CHARACTER) for code in codes).encode()) != table.checksum:
        raise NoText(f"a text in the character set {charset}, which has other characters in this version of Python")
    return found


def every_text(charset: str) -> Iterator[tuple[bytes, str]]:
    """All codes in few texts, and what the server makes of each text."""
    if charset in TABLES:
        table, codes = conversion(charset), list(codes_of(charset))
        yield b"".join(codes), "".join(table.get(code, NO_CHARACTER) for code in codes)
        return
    end = 0x10000 if charset in OF_TWO_BYTES else 0x110000
    for first in range(0, end, CHARACTERS_AT_ONCE):
        numbers = range(first, min(first + CHARACTERS_AT_ONCE, end))
        text = "".join(chr(number) for number in numbers if not 0xD800 <= number < 0xE000)
        yield text.encode(UNICODE[charset]), text


def _no_character(charset: str) -> NoText:
    return NoText(f"a code that the character set {charset} has no character for")


def _unicode(charset: str) -> Decode:
    decode = codecs.lookup(UNICODE[charset]).decode

    def read(cell: bytes) -> str:
        try:
            text = decode(cell)[0]
        except UnicodeDecodeError:
            raise _no_character(charset) from None
        if charset == "ucs2" and text and max(text) > "\uffff":  # two codes, each without a character
            raise _no_character(charset)
        return text

    return read


def _of_bytes(charset: str, table: Mapping[bytes, str]) -> Decode:
    characters = "".join(table.get(bytes([byte]), UNDEFINED) for byte in range(256))

    def read(cell: bytes) -> str:
        try:
            return codecs.charmap_decode(cell, "strict", characters)[0]
        except UnicodeDecodeError:
            raise _no_character(charset) from None

    return read


def _of_codes(charset: str, table: Mapping[bytes, str]) -> Decode:
    def read(cell: bytes) -> str:
        if cell.isascii():
            return cell.decode("ascii")
        try:
            return "".join(map(table.__getitem__, _split(charset, cell)))
        except KeyError:
            raise _no_character(charset) from None

    return read


def _split(charset: str, data: bytes) -> list[bytes]:
    """A byte that begins no code is one by itself."""
    found: list[bytes] = _pattern(charset).findall(data)
    return found


@cache
def _pattern(charset: str) -> re.Pattern[bytes]:
    forms = [b"".join(map(_class, form)) for form in FORMS.get(charset, ())]
    return re.compile(b"|".join([*forms, b"."]), re.DOTALL)


def _class(ranges: bytes) -> bytes:
    inner = b"".join(b"\\x%02x-\\x%02x" % pair for pair in zip(ranges[::2], ranges[1::2], strict=True))
    return b"[" + inner + b"]"


def _values(ranges: bytes) -> list[int]:
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return [value for first, last in pairs for value in range(first, last + 1)]


def by_codec(code: bytes, codec: str) -> str:
    """Empty if the codec has no character."""
    try:
        text = code.decode(codec)
    except UnicodeDecodeError:
        return ""
    return text if len(text) == 1 else ""


def _differences(codes: list[bytes], listed: str) -> Iterator[tuple[bytes, str]]:
    """``listed``: ``code=character`` in hexadecimal digits, no character if the code has none, and ``*n`` for ``n``
    successive codes, which have successive characters."""
    for entry in listed.split():
        code, _, rest = entry.partition("=")
        character, _, count = rest.partition("*")
        start = codes.index(bytes.fromhex(code))
        for step in range(int(count or 1)):
            yield codes[start + step], chr(int(character, 16) + step) if character else ""
