"""What the URL of a master and a mount table show about folders that executors on other hosts need."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.storage.sharing import runs_on_this_host, why_not_shared

MOUNTS = """\
22 1 0:21 / / rw,relatime - overlay overlay rw
23 22 0:22 / /proc rw - proc proc rw
24 22 0:23 / /mnt/team\\040share rw master:3 - nfs4 filer:/team rw
25 22 0:24 / /lake rw - ext4 /dev/vdb rw
26 22 0:25 / /dev/shm rw - tmpfs shm rw
27 25 0:26 / /lake/scratch rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("master", "on_this_host"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost", True),
        ("spark://[::1]:7077", True),
        ("spark://worker-1:7077", True),
        ("spark://WORKER-1.example", True),
        ("spark://cluster:7077", False),
        ("spark://127.0.0.1:7077,cluster:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_only_a_local_or_a_standalone_master_of_this_host_runs_on_this_host(master: str, on_this_host: bool) -> None:
    assert runs_on_this_host(master, {"worker-1", "worker-1.example"}) is on_this_host


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/tmp/cdc", "a temporary folder of this machine"),
        ("/var/lib/cdc", "the system disk of this machine (overlay)"),
        ("/dev/shm/cdc", "the memory of this machine, mounted at /dev/shm"),
        ("/lake/scratch/x", "the memory of this machine, mounted at /lake/scratch"),
        ("/lake/cdc", ""),
        ("/mnt/team share/cdc", ""),
    ],
)
def test_folders_of_this_host_only_are_distinguished_from_folders_that_may_be_shared(folder: str, why: str) -> None:
    assert why_not_shared(folder, MOUNTS, "/tmp") == why


def test_a_system_disk_on_the_network_may_be_shared() -> None:
    assert why_not_shared("/cdc", "22 1 0:21 / / rw - nfs filer:/root rw\n", "/tmp") == ""


def test_without_a_mount_table_only_the_temporary_folder_is_local() -> None:
    assert why_not_shared("/cdc", "", "/tmp") == ""
    assert why_not_shared("/tmp/cdc", "", "/tmp")
