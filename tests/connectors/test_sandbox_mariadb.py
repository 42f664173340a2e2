"""The MariaDB that ends with the process that started it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.connectors.mysql_database import Shop
from tests.mariadb import embedded

pytestmark = pytest.mark.server


@pytest.mark.nightly
def test_a_server_leaves_the_temporary_tables_of_others_alone() -> None:
    """At its start a server removes the files of a dead one from the folder of temporary tables."""
    with embedded() as server:
        ((folder,),) = Shop(server).ask("SELECT @@tmpdir")
        file = Path(folder, "#sql-temptable-1-1-1.MAI")
        file.touch()
        owner = server.data.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
        with embedded():
            assert file.exists()
