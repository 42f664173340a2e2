"""Python codecs for the character sets of the server. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Callable

CODECS = {
    "armscii8": "",
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8": "utf_8",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}


def has_codec(charset: str) -> bool:
    return bool(CODECS.get(charset))


def codec_of(charset: str) -> Callable[[bytes], str]:
    """Raises LookupError for a character set without a codec in Python."""
    name = CODECS.get(charset)
    if not name:
        raise LookupError(f"no codec for {f'the character set {charset}' if charset else 'an unknown character set'}")
    if charset == "latin1":
        return _latin1
    decode = codecs.lookup(name).decode
    return lambda cell: decode(cell)[0]


LATIN1 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)}
"""The server's latin1 is Windows code page 1252, with its five undefined bytes mapped to the code points themselves."""


def _latin1(cell: bytes) -> str:
    return cell.decode("latin-1") if cell.isascii() else "".join(LATIN1[byte] for byte in cell)
