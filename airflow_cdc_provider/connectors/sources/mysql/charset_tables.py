"""How the conversions of character sets differ between the server and Python.

Generated from MariaDB by ``python -m tests.connectors.charset_tables``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CharsetTable(NamedTuple):
    """``collations``: their numbers. ``codec``: of Python. ``differences``: see ``charsets``. ``checksum``: CRC-32, in
    UTF-8, of the server's conversion of all codes."""

    collations: tuple[int, ...]
    codec: str
    differences: str
    checksum: int


TABLES: Mapping[str, CharsetTable] = {
    "armscii8": CharsetTable(
        (32, 64, 1056, 1088),
        "latin_1",
        "a1=2741 a2=a7 a3=589 a4=29 a5=28 a6=bb a7=ab a8=2014 a9=2e aa=55d ab=2c*2 ad=55f ae=2026 af=55c b0=55b b1=55e "
        "b2=531 b3=561 b4=532 b5=562 b6=533 b7=563 b8=534 b9=564 ba=535 bb=565 bc=536 bd=566 be=537 bf=567 c0=538 "
        "c1=568 c2=539 c3=569 c4=53a c5=56a c6=53b c7=56b c8=53c c9=56c ca=53d cb=56d cc=53e cd=56e ce=53f cf=56f "
        "d0=540 d1=570 d2=541 d3=571 d4=542 d5=572 d6=543 d7=573 d8=544 d9=574 da=545 db=575 dc=546 dd=576 de=547 "
        "df=577 e0=548 e1=578 e2=549 e3=579 e4=54a e5=57a e6=54b e7=57b e8=54c e9=57c ea=54d eb=57d ec=54e ed=57e "
        "ee=54f ef=57f f0=550 f1=580 f2=551 f3=581 f4=552 f5=582 f6=553 f7=583 f8=554 f9=584 fa=555 fb=585 fc=556 "
        "fd=586 fe=2019 ff=27",
        0x5D747105,
    ),
    "ascii": CharsetTable(
        (11, 65, 1035, 1089),
        "ascii",
        "",
        0x595BAB8D,
    ),
    "big5": CharsetTable(
        (1, 84, 1025, 1108),
        "big5",
        "a15a=fffd a1c3=fffd a1c5=fffd a1fe=fffd a240=fffd a2cc=fffd a2ce=fffd f9d6=7881 f9d7=92b9 f9d8=88cf f9d9=58bb "
        "f9da=6052 f9db=7ca7 f9dc=5afa",
        0xD898B3BA,
    ),
    "cp1250": CharsetTable(
        (26, 34, 44, 66, 99, 1050, 1090),
        "cp1250",
        "",
        0xFF79F064,
    ),
    "cp1251": CharsetTable(
        (14, 23, 50, 51, 52, 1074, 1075),
        "cp1251",
        "",
        0xB65226FB,
    ),
    "cp1256": CharsetTable(
        (57, 67, 1081, 1091),
        "cp1256",
        "8a= 8f= 98= 9a= 9f= aa= c0= ff=",
        0x2B463039,
    ),
    "cp1257": CharsetTable(
        (29, 58, 59, 1082, 1083),
        "cp1257",
        "",
        0x9AAFE8AA,
    ),
    "cp850": CharsetTable(
        (4, 80, 1028, 1104),
        "cp850",
        "",
        0x3C57DB7E,
    ),
    "cp852": CharsetTable(
        (40, 81, 1064, 1105),
        "cp852",
        "",
        0xE98B5CDE,
    ),
    "cp866": CharsetTable(
        (36, 68, 1060, 1092),
        "cp866",
        "fc=207f fd=b2",
        0x61149CE1,
    ),
    "cp932": CharsetTable(
        (95, 96, 1119, 1120),
        "cp932",
        "",
        0x586387E2,
    ),
    "dec8": CharsetTable(
        (3, 69, 1027, 1093),
        "latin_1",
        "a4= a6= a8=a4 ac=*4 b4= b8= be= d0= d7=152 dd=178 de= f0= f7=153 fd=ff fe=*2",
        0x2453A83F,
    ),
    "eucjpms": CharsetTable(
        (97, 98, 1121, 1122),
        "euc_jp",
        "a1c1=ff5e a1c2=2225 a1dd=ff0d a1f1=ffe0*2 a2cc=ffe2 ada1=2460*20 adb5=2160*10 adc0=3349 adc1=3314 adc2=3322 "
        "adc3=334d adc4=3318 adc5=3327 adc6=3303 adc7=3336 adc8=3351 adc9=3357 adca=330d adcb=3326 adcc=3323 adcd=332b "
        "adce=334a adcf=333b add0=339c*3 add3=338e*2 add5=33c4 add6=33a1 addf=337b ade0=301d ade1=301f ade2=2116 "
        "ade3=33cd ade4=2121 ade5=32a4*5 adea=3231*2 adec=3239 aded=337e adee=337d adef=337c adf0=2252 adf1=2261 "
        "adf2=222b adf3=222e adf4=2211 adf5=221a adf6=22a5 adf7=2220 adf8=221f adf9=22bf adfa=2235 adfb=2229*2 "
        "f5a1=e000*940 8fa2b7=ff5e 8fa2c3=ffe4 8ff3f3=2170*10 8ff3fd=2160*10 8ff4a9=ff07 8ff4aa=ff02 8ff4ab=3231 "
        "8ff4ac=2116 8ff4ad=2121 8ff4ae=70bb 8ff4af=4efc 8ff4b0=50f4 8ff4b1=51ec 8ff4b2=5307 8ff4b3=5324 8ff4b4=fa0e "
        "8ff4b5=548a 8ff4b6=5759 8ff4b7=fa0f*2 8ff4b9=589e 8ff4ba=5bec 8ff4bb=5cf5 8ff4bc=5d53 8ff4bd=fa11 8ff4be=5fb7 "
        "8ff4bf=6085 8ff4c0=6120 8ff4c1=654e 8ff4c2=663b 8ff4c3=6665 8ff4c4=fa12 8ff4c5=f929 8ff4c6=6801 8ff4c7=fa13*2 "
        "8ff4c9=6a6b 8ff4ca=6ae2 8ff4cb=6df8 8ff4cc=6df2 8ff4cd=7028 8ff4ce=fa15*2 8ff4d0=7501 8ff4d1=7682 8ff4d2=769e "
        "8ff4d3=fa17 8ff4d4=7930 8ff4d5=fa18*4 8ff4d9=7ae7 8ff4da=fa1c*2 8ff4dc=7da0 8ff4dd=7dd6 8ff4de=fa1e "
        "8ff4df=8362 8ff4e0=fa1f 8ff4e1=85b0 8ff4e2=fa20*2 8ff4e4=8807 8ff4e5=fa22 8ff4e6=8b7f 8ff4e7=8cf4 8ff4e8=8d76 "
        "8ff4e9=fa23*3 8ff4ec=90de 8ff4ed=fa26 8ff4ee=9115 8ff4ef=fa27*2 8ff4f1=9592 8ff4f2=f9dc 8ff4f3=fa29 "
        "8ff4f4=973b 8ff4f5=974d 8ff4f6=9751 8ff4f7=fa2a*3 8ff4fa=999e 8ff4fb=9ad9 8ff4fc=9b72 8ff4fd=fa2d 8ff4fe=9ed1 "
        "8ff5a1=e3ac*940",
        0x0125C835,
    ),
    "euckr": CharsetTable(
        (19, 85, 1043, 1109),
        "cp949",
        "",
        0x91B7DA36,
    ),
    "gb2312": CharsetTable(
        (24, 86, 1048, 1110),
        "gb2312",
        "",
        0x9A35AD93,
    ),
    "gbk": CharsetTable(
        (28, 87, 1052, 1111),
        "gbk",
        "",
        0x93D8C2A2,
    ),
    "geostd8": CharsetTable(
        (92, 93, 1116, 1117),
        "cp1252",
        "83= 88= 8a= 8c= 8e= 98=*3 9c= 9e=*2 c0=10d0*7 c7=10f1 c8=10d7*6 ce=10f2 cf=10dd*6 d5=10f3 d6=10e3*12 e2=10f4 "
        "e3=10ef*2 e5=10f5 e6=*23 fd=2116 fe=*2",
        0xD6F6304D,
    ),
    "greek": CharsetTable(
        (25, 70, 1049, 1094),
        "iso8859_7",
        "a1=2bd a2=2bc a4=*2 aa=",
        0x29732872,
    ),
    "hebrew": CharsetTable(
        (16, 71, 1040, 1095),
        "iso8859_8",
        "af=203e",
        0x45161F41,
    ),
    "hp8": CharsetTable(
        (6, 72, 1030, 1096),
        "hp_roman8",
        "",
        0x30781C16,
    ),
    "keybcs2": CharsetTable(
        (37, 73, 1061, 1097),
        "cp852",
        "80=10c 83=10f 85=10e 86=164 87=10d 88=11b 89=11a 8a=139 8b=cd 8c=13e 8d=13a 8f=c1 91=17e 92=17d 95=d3 96=16f "
        "97=da 98=fd 9b=160 9c=13d 9d=dd 9e=158 9f=165 a4=148 a5=147 a6=16e a7=d4 a8=161 a9=159 aa=155 ab=154 ac=bc "
        "ad=a1 b5=2561*2 b7=2556 b8=2555 bd=255c be=255b c6=255e*2 cf=2567*2 d1=2564*2 d3=2559 d4=2558 d5=2552*2 "
        "d7=256b d8=256a dd=258c de=2590 e0=3b1 e2=393 e3=3c0 e4=3a3 e5=3c3 e6=b5 e7=3c4 e8=3a6 e9=398 ea=3a9 eb=3b4 "
        "ec=221e ed=3c6 ee=3b5 ef=2229 f0=2261 f1=b1 f2=2265 f3=2264 f4=2320*2 f7=2248 f9=2219 fa=b7 fb=221a fc=207f "
        "fd=b2",
        0xB2CD760F,
    ),
    "koi8r": CharsetTable(
        (7, 74, 1031, 1098),
        "koi8_r",
        "",
        0x4C6B86EB,
    ),
    "koi8u": CharsetTable(
        (22, 75, 1046, 1099),
        "koi8_u",
        "95=2022",
        0x5A38B755,
    ),
    "latin1": CharsetTable(
        (5, 8, 15, 31, 47, 48, 49, 94, 1032, 1071),
        "cp1252",
        "81=81 8d=8d 8f=8f*2 9d=9d",
        0x040EC49F,
    ),
    "latin2": CharsetTable(
        (2, 9, 21, 27, 77, 1033, 1101),
        "iso8859_2",
        "",
        0xEC22F3A0,
    ),
    "latin5": CharsetTable(
        (30, 78, 1054, 1102),
        "iso8859_9",
        "",
        0xC188A953,
    ),
    "latin7": CharsetTable(
        (20, 41, 42, 79, 1065, 1103),
        "iso8859_13",
        "",
        0xFE9A6B74,
    ),
    "macce": CharsetTable(
        (38, 43, 1062, 1067),
        "mac_latin2",
        "",
        0x4778E750,
    ),
    "macroman": CharsetTable(
        (39, 53, 1063, 1077),
        "mac_roman",
        "",
        0xE21E6838,
    ),
    "sjis": CharsetTable(
        (13, 88, 1037, 1112),
        "shift_jis",
        "815f=5c",
        0xA2E8E5F3,
    ),
    "swe7": CharsetTable(
        (10, 82, 1034, 1106),
        "ascii",
        "40=c9 5b=c4 5c=d6 5d=c5 5e=dc 60=e9 7b=e4 7c=f6 7d=e5 7e=fc 7f=",
        0xB60E6A1E,
    ),
    "tis620": CharsetTable(
        (18, 89, 1042, 1113),
        "tis_620",
        "a0=fffd db=fffd dc=fffd dd=fffd de=fffd fc=fffd fd=fffd fe=fffd ff=fffd",
        0x022A3D12,
    ),
    "ujis": CharsetTable(
        (12, 91, 1036, 1115),
        "euc_jp",
        "a1c0=5c f5a1=e000*940 8ff5a1=e3ac*940",
        0xF756FB4E,
    ),
}
