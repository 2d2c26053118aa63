"""The hint to the newest checkpoint and its checksum."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests import corpora
from variantlake.delta.log.last_checkpoint import (
    LAST_CHECKPOINT,
    MAX_HINT_BYTES,
    canonical,
    checksum,
    read_last_checkpoint,
    write_last_checkpoint,
)
from variantlake.storage.opening import open_store

# PROTOCOL, "JSON checksum".
EXAMPLE = (
    b'{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", '
    b'"k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
)
CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
    '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
)


def test_the_example_of_the_protocol() -> None:
    document = orjson.loads(EXAMPLE)
    assert canonical({key: document[key] for key in ("k0", "k1")}) == CANONICAL
    assert checksum(document) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize(
    "name", ["spark-variant-checkpoint", "spark-shredded-variant-preview-delta"]
)
def test_hints_of_delta_spark_are_believed(name: str) -> None:
    root = corpora.DELTA_TABLES / name
    document = orjson.loads((root / LAST_CHECKPOINT).read_bytes())
    assert checksum(document) == document["checksum"]
    assert read_last_checkpoint(open_store(root)) == 2


def test_a_hint_comes_back(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_last_checkpoint(store, version=10, size=3, size_in_bytes=99, num_of_add_files=1)
    assert read_last_checkpoint(store) == 10


def test_a_damaged_hint_counts_as_absent(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_last_checkpoint(store, version=10, size=3, size_in_bytes=99, num_of_add_files=1)
    text = store.read(LAST_CHECKPOINT)
    store.put(LAST_CHECKPOINT, text.replace(b'"version":10', b'"version":11'))
    assert read_last_checkpoint(store) is None


def test_a_hint_that_is_nested_too_deep_counts_as_absent(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    deep = "[" * 1000 + "]" * 1000
    store.put(LAST_CHECKPOINT, f'{{"version":1,"checksum":"x","deep":{deep}}}'.encode())
    assert read_last_checkpoint(store) is None


def test_a_hint_beyond_our_limit_counts_as_absent(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(LAST_CHECKPOINT, b'{"version":10,"more":"' + b"x" * MAX_HINT_BYTES + b'"}')
    assert read_last_checkpoint(store) is None
