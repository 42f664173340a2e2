"""Values of Debezium's rows and their meaning, after its documentation and after recorded ones."""

from __future__ import annotations

from tests.connectors.formats.debezium_messages import CONNECT, DATA, PLACEHOLDER, TIME, field, typed

TYPES = [
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
        "unsigned numbers, told as signed ones",
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
            field("h", "array"),
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
