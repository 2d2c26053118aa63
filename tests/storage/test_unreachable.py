"""Object stores that cannot be reached: said early, shortly, with what to do."""

from __future__ import annotations

import os
import time

import pytest

import variantlake as vl
from variantlake.errors import InvalidValue, StoreFailed

KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1"}
DEAD = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing of clouds."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "VARIANTLAKE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nowhere")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "az", "abfss"])
def test_without_credentials_no_metadata_address_is_asked(scheme: str) -> None:
    started = time.monotonic()
    with pytest.raises(StoreFailed, match="no credentials") as caught:
        vl.Table.open(f"{scheme}://bucket/t")
    assert time.monotonic() - started < 2
    assert "VARIANTLAKE_CLOUD_METADATA" in caught.value.hint
    with pytest.raises(StoreFailed, match="no credentials") as caught:
        vl.ndjson(f"{scheme}://bucket/a.json")
    assert "VARIANTLAKE_CLOUD_METADATA" in caught.value.hint


def test_a_metadata_address_is_asked_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", DEAD)
    monkeypatch.setenv("VARIANTLAKE_RETRY_SECONDS", "0")
    with pytest.raises(StoreFailed, match=r"127\.0\.0\.1"):
        vl.Table.open("s3://bucket/t")


def test_an_endpoint_without_encryption_says_what_allows_it() -> None:
    try:
        vl.set_storage_options({**KEYS, "AWS_ENDPOINT_URL": DEAD})
        with pytest.raises(StoreFailed, match="not encrypted") as caught:
            vl.Table.open("s3://bucket/t")
        assert "AWS_ALLOW_HTTP=true" in caught.value.hint
    finally:
        vl.set_storage_options({})


def test_what_is_not_encrypted_is_not_read() -> None:
    with pytest.raises(StoreFailed, match="not encrypted") as caught:
        vl.ndjson("http://localhost/a.json")
    assert "https://" in caught.value.hint


def test_a_dead_endpoint_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": DEAD, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VARIANTLAKE_RETRY_SECONDS", "0.1")
    started = time.monotonic()
    with pytest.raises(StoreFailed, match=f"does not answer at {DEAD}") as caught:
        vl.Table.open("s3://bucket/t")
    assert time.monotonic() - started < 3
    assert "VARIANTLAKE_RETRY_SECONDS" in caught.value.hint
    monkeypatch.setenv("VARIANTLAKE_RETRY_SECONDS", "soon")
    with pytest.raises(InvalidValue, match="VARIANTLAKE_RETRY_SECONDS is 'soon'"):
        vl.Table.open("s3://bucket/t")
