"""Values of Debezium's rows and their meaning, after its documentation and after recorded messages."""

from __future__ import annotations

from decimal import Decimal

from tests.connectors.formats.debezium_messages import CONNECT, DATA, PLACEHOLDER, TIME, array, field, typed

MONEY = {"scale": "2", "connect.decimal.precision": "10"}

TYPES = [
    typed(
        "arrays: items have the values of columns of their types",
        [
            array("a", "bytes", f"{CONNECT}Decimal", **MONEY),
            array("b", "struct", f"{DATA}VariableScaleDecimal"),
            array("c", "int32", f"{TIME}Date"),
            array("d", "int64", f"{TIME}MicroTime"),
            array("e", "int32", f"{TIME}Time"),
            array("f", "int64", f"{TIME}MicroTimestamp"),
            array("g", "string", f"{TIME}ZonedTimestamp"),
            array("h", "bytes"),
            array("i", "float"),
            array("j", "boolean"),
            array("k", "string", f"{DATA}Json"),
            array("l", "string", f"{DATA}Uuid"),
            array("m", "string"),
            {**array("n", ""), "items": array("", "bytes", f"{CONNECT}Decimal", **MONEY)},
            {**field("o", "map"), "values": field("", "int32", f"{TIME}Date")},
            array("p", "bytes", f"{DATA}Bits", length="4"),
        ],
        {
            "a": ["BNI=", "nA==", None],
            "b": [{"scale": 1, "value": "Dw=="}, None, {"scale": 0, "value": "BWvHXi1jEAAA"}],
            "c": [19782, None],
            "d": [45296500000],
            "e": [45296500],
            "f": [1709210096123456],
            "g": ["2024-02-29T10:34:56.5+02:00"],
            "h": ["AP8=", None],
            "i": [1.5, "NaN"],
            "j": [True, False, None],
            "k": ['{"a": 1}'],
            "l": ["11111111-2222-3333-4444-AAAAAAAAAAAA"],
            "m": ["a", 'b"'],
            "n": [["BNI="], [], None],
            "o": {"x": 19782, "y": None},
            "p": ["Cg=="],
        },
        '"a":"[12.34,-1.00,null]","b":"[1.5,null,100000000000000000000]","c":"[\\"2024-02-29\\",null]",'
        '"d":"[\\"12:34:56.5\\"]","e":"[\\"12:34:56.5\\"]","f":"[\\"2024-02-29T12:34:56.123456\\"]",'
        '"g":"[\\"2024-02-29T08:34:56.500000Z\\"]","h":"[\\"AP8=\\",null]","i":"[1.5,\\"NaN\\"]","j":"[true,false,null]",'
        '"k":"[\\"{\\\\\\"a\\\\\\": 1}\\"]","l":"[\\"11111111-2222-3333-4444-aaaaaaaaaaaa\\"]",'
        '"m":"[\\"a\\",\\"b\\\\\\"\\"]","n":"[[12.34],[],null]","o":"{\\"x\\":\\"2024-02-29\\",\\"y\\":null}",'
        '"p":"[\\"1010\\"]"',
    ),
    typed(
        "decimals as numbers (decimal.format=NUMERIC)",
        [
            field("a", "bytes", f"{CONNECT}Decimal", scale="4", **{"connect.decimal.precision": "20"}),
            field("b", "bytes", f"{CONNECT}Decimal", scale="10", **{"connect.decimal.precision": "20"}),
            field("c", "bytes", f"{CONNECT}Decimal", scale="0", **{"connect.decimal.precision": "5"}),
            field("d", "bytes", f"{CONNECT}Decimal", scale="0"),
            array("e", "bytes", f"{CONNECT}Decimal", **MONEY),
            field("f", "bytes", f"{CONNECT}Decimal", scale="30", **{"connect.decimal.precision": "60"}),
        ],
        {
            "a": Decimal("-1234567890123456.7891"),
            "b": Decimal("1E-10"),
            "c": -7,
            "d": Decimal("1.5E+3"),
            "e": [Decimal("12.34"), -1, None],
            "f": Decimal("123456789012345678901234567890.000000000000000000000000000001"),
        },
        '"a":"-1234567890123456.7891","b":"0.0000000001","c":"-7","d":"1500","e":"[12.34,-1.00,null]",'
        '"f":"123456789012345678901234567890.000000000000000000000000000001"',
    ),
    typed(
        "decimals: precise, of any scale, negative",
        [
            field("a", "bytes", f"{CONNECT}Decimal", scale="2", **{"connect.decimal.precision": "10"}),
            field("b", "bytes", f"{CONNECT}Decimal", scale="0", **{"connect.decimal.precision": "5"}),
            field("c", "struct", f"{DATA}VariableScaleDecimal"),
            field("d", "double"),
            field("e", "string"),
        ],
        {"a": "BNI=", "b": "/w==", "c": {"scale": 1, "value": "Dw=="}, "d": "NaN", "e": "12.340"},
        '"a":"12.34","b":"-1","c":"1.5","d":"NaN","e":"12.340"',
    ),
    typed(
        "dates and times, adaptive",
        [
            field("a", "int32", f"{TIME}Date"),
            field("b", "int32", f"{TIME}Time"),
            field("c", "int64", f"{TIME}MicroTime"),
            field("d", "int64", f"{TIME}NanoTime"),
            field("e", "int64", f"{TIME}Timestamp"),
            field("f", "int64", f"{TIME}MicroTimestamp"),
            field("g", "int64", f"{TIME}NanoTimestamp"),
            field("h", "string", f"{TIME}ZonedTimestamp"),
            field("i", "string", f"{TIME}ZonedTime"),
            field("j", "int32", f"{TIME}Year"),
            field("k", "int64", f"{TIME}MicroDuration"),
            field("l", "string", f"{TIME}Interval"),
        ],
        {
            "a": 19782,
            "b": 45296123,
            "c": 45296123456,
            "d": 45296123456789,
            "e": 1709210096123,
            "f": 1709210096123456,
            "g": 1709210096123456000,
            "h": "2024-02-29T12:34:56.123456+02:00",
            "i": "12:34:56+02:00",
            "j": 2024,
            "k": 37091106780000,
            "l": "P1Y2M3DT4H5M6.78S",
        },
        '"a":"2024-02-29","b":"12:34:56.123","c":"12:34:56.123456","d":"12:34:56.123456",'
        '"e":"2024-02-29T12:34:56.123000","f":"2024-02-29T12:34:56.123456","g":"2024-02-29T12:34:56.123456",'
        '"h":"2024-02-29T10:34:56.123456Z","i":"12:34:56+02:00","j":2024,"k":37091106780000,"l":"P1Y2M3DT4H5M6.78S"',
        warnings=("nanoseconds_cut",),
    ),
    typed(
        "dates and times of Connect, and as ISO text",
        [
            field("a", "int32", f"{CONNECT}Date"),
            field("b", "int32", f"{CONNECT}Time"),
            field("c", "int64", f"{CONNECT}Timestamp"),
            field("d", "string", f"{TIME}IsoDate"),
            field("e", "string", f"{TIME}IsoTime"),
            field("f", "string", f"{TIME}IsoTimestamp"),
        ],
        {"a": 19782, "b": 1, "c": 1709210096123, "d": "2024-02-29Z", "e": "12:34:56Z", "f": "2024-02-29T12:34:56.5Z"},
        '"a":"2024-02-29","b":"00:00:00.001","c":"2024-02-29T12:34:56.123000","d":"2024-02-29","e":"12:34:56Z",'
        '"f":"2024-02-29T12:34:56.500000"',
    ),
    typed(
        "infinite numbers",
        [field("e", "double"), field("f", "double")],
        {"e": "Infinity", "f": "-Infinity"},
        '"e":"Infinity","f":"-Infinity"',
    ),
    typed(
        "unsigned numbers, sent as signed ones",
        [field("a", "int64", **{"__debezium.source.column.type": "BIGINT UNSIGNED"}), field("b", "int64")],
        {"a": -1, "b": -1},
        '"a":"18446744073709551615","b":-1',
        warnings=("unsigned_wrapped",),
    ),
    typed(
        "bytes, bits, enumerations, documents",
        [
            field("a", "bytes"),
            field("b", "bytes", f"{DATA}Bits", length="10"),
            field("c", "boolean"),
            field("d", "string", f"{DATA}Enum", allowed="x,y"),
            field("e", "string", f"{DATA}EnumSet", allowed="p,q,r"),
            field("f", "string", f"{DATA}Json"),
            field("g", "string", f"{DATA}Uuid"),
            array("h", "int32"),
            field("i", "struct", f"{DATA}geometry.Point"),
            field("j", "int16"),
        ],
        {
            "a": "AQID",
            "b": "qgI=",
            "c": True,
            "d": "y",
            "e": "p,r",
            "f": '{"a": 1}',
            "g": "11111111-2222-3333-4444-555555555555",
            "h": [1, None, 2],
            "i": {"x": 1, "y": 2.5, "wkb": "AQ==", "srid": None},
            "j": True,
        },
        '"a":"AQID","b":"1010101010","c":true,"d":"y","e":"p,r","f":"{\\"a\\": 1}",'
        '"g":"11111111-2222-3333-4444-555555555555","h":"[1,null,2]",'
        '"i":"{\\"x\\":1,\\"y\\":2.5,\\"wkb\\":\\"AQ==\\",\\"srid\\":null}","j":1',
    ),
    *(
        typed(
            f"an unavailable value: {name}", [field("w", kind)], {"w": form}, "", after='{"id":1}', after_complete=False
        )
        for name, kind, form in (
            ("text", "string", PLACEHOLDER),
            ("bytes", "bytes", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="),
            ("bytes as hex", "string", PLACEHOLDER.encode().hex()),
            ("texts", "array", [PLACEHOLDER]),
            ("numbers", "array", list(PLACEHOLDER.encode())),
            ("uuids", "array", ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
            ("a map", "map", {PLACEHOLDER: PLACEHOLDER}),
            ("a map as JSON", "string", f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}'),
        )
    ),
]
