"""A real S3 server on this machine: moto in a process of its own.

`python -m tests.s3_server PORT` serves until it is killed. One request at a time: moto looks
whether an object exists and then puts it, and only so are the two one step, as S3 promises.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from unittest.mock import patch

from tests import corpora

BUCKET = "tables"


@contextlib.contextmanager
def running() -> Iterator[Mapping[str, str]]:
    """Start the server with an empty bucket; gives the environment for whoever uses it.

    The environment of this process has it too while the server runs. Skips the test without moto.
    """
    if importlib.util.find_spec("moto") is None:
        corpora.missing("moto")
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.s3_server", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    try:
        _make_bucket(url, process)
        with patch.dict(os.environ, environment):
            yield environment
    finally:
        process.kill()
        process.wait()


def _make_bucket(url: str, process: subprocess.Popen[bytes]) -> None:
    request = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")  # noqa: S310 - our own server
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - our own server
        except OSError:
            time.sleep(0.1)
        else:
            return
    msg = "the S3 server did not start"
    raise RuntimeError(msg)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def main() -> None:
    """Serve on the port that the command line names."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=False)


if __name__ == "__main__":
    main()
