"""An S3 server of the test's own: moto's, in a thread, on a free port of this machine, with one bucket."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ghostpoi import stores

BUCKET = "city"
SECRET = "s3cret-of-the-store"


@dataclass(frozen=True)
class Store:
    """A running server, and a client that knows nothing of ghostpoi."""

    server: Any
    client: Any

    def put(self, key: str, content: bytes | Path) -> str:
        body = content.read_bytes() if isinstance(content, Path) else content
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)
        return f"s3://{BUCKET}/{key}"

    def get(self, key: str) -> bytes:
        found: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return found

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(one["Key"] for page in pages for one in page.get("Contents", []))

    def fetch(self, prefix: str, folder: Path) -> Path:
        """Download all below a prefix, as anybody would."""
        for key in self.keys(f"{prefix}/"):
            path = folder / key.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(key))
        return folder


@contextmanager
def object_store() -> Iterator[Store]:
    """Start a server, and set the environment of this process and its children for it."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    named = {"AWS_ACCESS_KEY_ID": "publisher", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
             "AWS_ENDPOINT_URL": f"http://{host}:{port}"}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in named.items():
            patch.setenv(name, value)
        stores._bucket.cache_clear()
        client = boto3.client("s3", endpoint_url=named["AWS_ENDPOINT_URL"])
        client.create_bucket(Bucket=BUCKET)
        try:
            yield Store(server, client)
        finally:
            server.stop()
            stores._bucket.cache_clear()
    os.environ.pop("MOTO_PORT", None)
