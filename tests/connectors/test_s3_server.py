"""The S3 server of the tests: writers at once, on one object."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

from tests.s3_server import CONDITIONAL, make_atomic

WRITERS, ROUNDS = 4, 25


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a server whose threads take turns after every few instructions."""
    for name in CONDITIONAL:
        monkeypatch.setattr(S3Response, name, getattr(S3Response, name))
    make_atomic()
    usual = sys.getswitchinterval()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    sys.setswitchinterval(1e-6)
    yield "http://{}:{}".format(*server.get_host_and_port())
    sys.setswitchinterval(usual)
    server.stop()


def uploaded(client: Any, key: str) -> None:
    client.put_object(Bucket="lake", Key=key, Body=b"x", IfNoneMatch="*")


def completed(client: Any, key: str) -> None:
    upload = client.create_multipart_upload(Bucket="lake", Key=key)["UploadId"]
    part = client.upload_part(Bucket="lake", Key=key, UploadId=upload, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(Bucket="lake", Key=key, UploadId=upload, MultipartUpload=parts, IfNoneMatch="*")


@pytest.mark.parametrize("write", [uploaded, completed])
def test_one_of_several_writers_creates_an_object(address: str, write: Any) -> None:
    client = boto3.client(
        "s3", endpoint_url=address, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1"
    )
    client.create_bucket(Bucket="lake")
    for number in range(ROUNDS):
        created: list[bool] = []
        ready = threading.Barrier(WRITERS)

        def run(key: str, created: list[bool] = created, ready: threading.Barrier = ready) -> None:
            ready.wait()
            try:
                write(client, key)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "PreconditionFailed"
            else:
                created.append(True)

        threads = [threading.Thread(target=partial(run, f"{write.__name__}{number}")) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(created) == 1
