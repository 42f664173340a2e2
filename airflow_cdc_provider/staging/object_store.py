"""A store in a bucket of an object store with conditional writes: S3 or a system with its protocol, Google Cloud
Storage, Azure."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Problem, StagingUnavailable
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import store_arguments, store_tls_warnings
from airflow_cdc_provider.staging.object_files import ObjectInput, ObjectOutput
from airflow_cdc_provider.staging.store import StoredFile, require_inside

ERROR_CODE = re.compile(r"<Code>(\w+)</Code>")


class ObjectStore:
    """Files are created exclusively by a conditional request (``If-None-Match: *``, for Cloud Storage
    ``x-goog-if-generation-match: 0``): the store rejects one of two writers, and no reader sees a partial object.
    Requires permissions to get, put, delete and list objects. Raises CheckFailed (CON020, CON021, CON040) if the
    connection is not valid."""

    def __init__(self, root: str, connection: ConnectionInfo) -> None:
        self.root = root.rstrip("/")
        self._connection = connection
        location = parse_location(self.root)
        self._has_folders = location.has_folders
        self._class, self._arguments = store_arguments(location, connection, os.environ)

    @cached_property
    def _bucket(self) -> obstore.store.ObjectStore:
        bucket: obstore.store.ObjectStore = getattr(obstore.store, self._class)(**self._arguments)
        return bucket

    def tls_warnings(self) -> list[Problem]:
        return store_tls_warnings(self.root, self._connection)

    def url(self, path: str) -> str:
        require_inside(self.root, path)
        return f"{self.root}/{path}"

    def read(self, path: str) -> bytes:
        with self._guarded("read", path):
            return bytes(obstore.get(self._bucket, path).bytes())

    def exists(self, path: str) -> bool:
        with self._guarded("check for", path):
            try:
                obstore.head(self._bucket, path)
            except FileNotFoundError:
                return False
        return True

    def create(self, path: str, content: bytes) -> bool:
        with self._guarded("create", path), self._require_bucket(path):
            try:
                obstore.put(self._bucket, path, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def write(self, path: str, content: bytes) -> None:
        with self._guarded("write", path), self._require_bucket(path):
            obstore.put(self._bucket, path, content)

    def open_output(self, path: str) -> BinaryIO:
        """The object appears when the file is closed. A killed writer leaves an unfinished upload in the store, until a
        lifecycle rule of the bucket removes it."""
        if self.exists(path):
            raise self._failed("create", path, "an object of this name")
        with self._guarded("open", path):
            upload = obstore.open_writer(self._bucket, path)
        return cast(BinaryIO, ObjectOutput(upload, lambda verb: self._guarded(verb, path)))

    def open_input(self, path: str) -> BinaryIO:
        with self._guarded("open", path):
            size = obstore.head(self._bucket, path)["size"]
        return cast(BinaryIO, ObjectInput(self._bucket, path, size, lambda verb: self._guarded(verb, path)))

    def names(self, path: str) -> list[str]:
        with self._guarded("list", path), self._require_bucket(path):
            listing = obstore.list_with_delimiter(self._bucket, prefix=path or None)
        paths = {*listing["common_prefixes"], *(meta["path"] for meta in listing["objects"])} - {path}
        return sorted(name for entry in paths if not (name := entry.rpartition("/")[2]).startswith("."))

    def files(self, path: str) -> Iterator[StoredFile]:
        with self._guarded("list", path), self._require_bucket(path):
            for chunk in obstore.list(self._bucket, prefix=path or None):
                found = (StoredFile(meta["path"], meta["size"]) for meta in chunk)
                yield from (file for file in found if file.bytes or not self._is_marker(file.path))

    def _is_marker(self, path: str) -> bool:
        """Whether a listed object without content marks a folder, as Hadoop and consoles make them: its key ends with a
        slash, which the library takes away, so that nothing is under the name that it lists. It stays in the bucket."""
        return not self._has_folders and not self.exists(path)

    def delete(self, path: str) -> None:
        with self._guarded("delete", path), self._require_bucket(path):
            while below := [file.path for file in self.files(path)]:
                # Another process may delete the same folder: a file that it removed first is missing here.
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._bucket, below)
            if self._has_folders:
                self._delete_folders(path)
            if path:
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._bucket, path)

    def _delete_folders(self, path: str) -> None:
        """The folders below ``path``, the innermost first. The store does not delete a folder with content."""
        for folder in obstore.list_with_delimiter(self._bucket, prefix=path or None)["common_prefixes"]:
            self._delete_folders(folder)
            with contextlib.suppress(FileNotFoundError):
                obstore.delete(self._bucket, folder)

    @contextlib.contextmanager
    def _require_bucket(self, path: str) -> Iterator[None]:
        """For requests that do not fail for a missing object: only the bucket can be missing."""
        try:
            yield
        except FileNotFoundError:
            raise self._failed("reach", path, "no such bucket") from None

    @contextlib.contextmanager
    def _guarded(self, verb: str, path: str) -> Iterator[None]:
        require_inside(self.root, path)
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(self.url(path)) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._failed(verb, path, f"permission denied: {_error_text(error)}") from error
        except BaseError as error:
            raise self._failed(verb, path, _error_text(error)) from error

    def _failed(self, verb: str, path: str, found: str) -> StagingUnavailable:
        do = "check the bucket, its endpoint and the permissions to get, put, delete and list; the next run continues"
        data = "sealed windows and target tables are unchanged"
        what = f"cannot {verb} an object in the store"
        return StagingUnavailable.of("STG010", what, where=self.url(path), found=found, do=do, data=data)


def _error_text(error: BaseError) -> str:
    """The store's error code, or else the first line of the library's message, which contains no credentials."""
    code = ERROR_CODE.search(str(error))
    return code[1] if code else str(error).splitlines()[0][:300]
