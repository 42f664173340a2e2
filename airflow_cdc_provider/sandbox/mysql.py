"""A real MySQL on loopback that ends with the process that started it.

The program is the one that ``MYSQLD`` names. Root runs it as ``mysql``, as it does MariaDB.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.mariadb import SETTINGS, EmbeddedMariaDB

PROGRAM = "MYSQLD"


class EmbeddedMySQL(EmbeddedMariaDB):
    """Like MariaDB, with GTIDs. Raises ``NotInstalled`` (ENV016) if ``MYSQLD`` names no program."""

    name = "MySQL"
    default_settings: ClassVar[Mapping[str, str]] = {
        **SETTINGS,
        "gtid-mode": "ON",
        "enforce-gtid-consistency": "ON",
        "mysqlx": "OFF",
        "tls-version": "",
        "secure-file-priv": "NULL",
    }

    def _find_program(self) -> str:
        program = os.environ.get(PROGRAM, "")
        if not os.access(program, os.X_OK):
            raise NotInstalled.of(
                "ENV016",
                "no MySQL server",
                where=f"the environment variable {PROGRAM}",
                found=program or "not set",
                do=f"set {PROGRAM} to the path of mysqld",
            )
        return program

    def _create_data(self) -> list[str]:
        return [self.program, "--no-defaults", "--initialize-insecure", f"--datadir={self.data}"]
