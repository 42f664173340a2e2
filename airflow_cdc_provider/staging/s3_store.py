"""A prefix in a bucket of S3, or of any store that speaks its protocol and honours conditional writes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store as Bucket

from airflow_cdc_provider.core.errors import Problem, StagingUnavailable
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.s3 import S3Access
from airflow_cdc_provider.staging.object_files import ObjectInput, ObjectOutput
from airflow_cdc_provider.staging.store import require_inside

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

# Airflow and Spark try again on a larger scale: here only short disturbances are waited out.
RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
S3_CODE = re.compile(r"<Code>(\w+)</Code>")


class S3Store:
    """Exclusive creation is one PUT with ``If-None-Match: *``: of two writers one gets 412, no reader sees half an
    object. Needs the rights to get, put, delete and list."""

    def __init__(self, root: str, access: S3Access) -> None:
        self.root = root.rstrip("/")
        self._access = access

    @cached_property
    def _bucket(self) -> Bucket:
        place, access = parse_location(self.root), self._access
        config: S3Config = {"conditional_put": "etag"}
        if access.endpoint:
            config["endpoint"] = access.endpoint
        if access.region:
            config["region"] = access.region
        client: ClientConfig = {"allow_http": True} if access.uses_plain_http else {}
        # Given as a whole: fields would mix with a session token of the environment.
        credentials: S3Credential = {
            "access_key_id": access.key,
            "secret_access_key": access.secret,
            "token": access.token or None,
            "expires_at": None,
        }
        return Bucket(
            place.bucket,
            prefix=place.path or None,
            config=config,
            client_options=client,
            retry_config=RETRIES,
            credential_provider=(lambda: credentials) if access.key else None,
        )

    def url(self, path: str) -> str:
        require_inside(self.root, path)
        return f"{self.root}/{path}"

    def read(self, path: str) -> bytes:
        with self._guarded("read", path):
            return bytes(obstore.get(self._bucket, path).bytes())

    def exists(self, path: str) -> bool:
        with self._guarded("look for", path):
            try:
                obstore.head(self._bucket, path)
            except FileNotFoundError:
                return False
        return True

    def create(self, path: str, content: bytes) -> bool:
        with self._guarded("create", path), self._bucket_needed(path):
            try:
                obstore.put(self._bucket, path, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def write(self, path: str, content: bytes) -> None:
        with self._guarded("write", path), self._bucket_needed(path):
            obstore.put(self._bucket, path, content)

    def open_output(self, path: str) -> BinaryIO:
        """The object appears when the file is closed. What a killed writer has sent stays in the store as an unfinished
        upload, until a lifecycle rule of the bucket removes it."""
        if self.exists(path):
            raise self._failed("create", path, "an object of this name")
        with self._guarded("open", path):
            upload = obstore.open_writer(self._bucket, path)
        return cast(BinaryIO, ObjectOutput(upload, lambda act: self._guarded(act, path)))

    def open_input(self, path: str) -> BinaryIO:
        with self._guarded("open", path):
            size = obstore.head(self._bucket, path)["size"]
        return cast(BinaryIO, ObjectInput(self._bucket, path, size, lambda act: self._guarded(act, path)))

    def names(self, path: str) -> list[str]:
        with self._guarded("list", path), self._bucket_needed(path):
            found = obstore.list_with_delimiter(self._bucket, prefix=path or None)
        paths = {*found["common_prefixes"], *(meta["path"] for meta in found["objects"])} - {path}
        return sorted(name for one in paths if not (name := one.rpartition("/")[2]).startswith("."))

    def delete(self, path: str) -> None:
        with self._guarded("delete", path), self._bucket_needed(path):
            below = [meta["path"] for chunk in obstore.list(self._bucket, prefix=path) for meta in chunk]
            obstore.delete(self._bucket, [path, *below])

    @contextlib.contextmanager
    def _bucket_needed(self, path: str) -> Iterator[None]:
        """Where no object is asked for, only the bucket can be missing."""
        try:
            yield
        except FileNotFoundError:
            raise self._failed("reach", path, "no such bucket") from None

    @contextlib.contextmanager
    def _guarded(self, act: str, path: str) -> Iterator[None]:
        require_inside(self.root, path)
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(self.url(path)) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._failed(act, path, f"refused: {_words(error)}") from error
        except BaseError as error:
            raise self._failed(act, path, _words(error)) from error

    def _failed(self, act: str, path: str, found: str) -> StagingUnavailable:
        do = "see to the bucket, its endpoint and our rights to get, put, delete and list; the next run goes on"
        data = "sealed windows and target tables are unchanged"
        what = f"the object store did not let us {act}"
        return StagingUnavailable(Problem("STG010", what, where=self.url(path), found=found, do=do, data=data))


def _words(error: BaseError) -> str:
    """The store's own word for it, else the library's first line, which quotes no credentials."""
    code = S3_CODE.search(str(error))
    return code[1] if code else str(error).splitlines()[0][:300]
