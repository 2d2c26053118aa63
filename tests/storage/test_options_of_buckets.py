"""Storage options of one call: two accounts in one process, and secrets that stay put."""

from __future__ import annotations

import http.server
import logging
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import variantlake as vl
from tests.s3_server import running
from variantlake.errors import InvalidValue, StoreFailed, VariantLakeError
from variantlake.storage import options as module
from variantlake.storage.options import (
    options_to_send,
    reach_with,
    set_storage_options,
    storage_options,
    take_options,
)

Options = Mapping[str, str]
SECRET = "a-very-secret-key"  # noqa: S105 - the test looks for it


@pytest.fixture(autouse=True)
def _no_options() -> Iterator[None]:
    yield
    set_storage_options({})
    module._of_buckets.clear()


@contextmanager
def signed_by() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that has no object, and the headers of what it was asked."""
    asked: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(403)
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815 - as http.server calls it

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def keys(endpoint: str, key: str = "another") -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }


def test_two_accounts_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')
    with running() as one:
        first = vl.Table.create(
            "s3://tables/t", "event VARIANT", storage_options={**one, "AWS_ACCESS_KEY_ID": "k"}
        )
        first.append([{"a": 7}])
        with signed_by() as (endpoint, asked):
            with pytest.raises(VariantLakeError):
                vl.Table.open("s3a://other/t", storage_options=keys(endpoint))
            assert all("Credential=another/" in each["authorization"] for each in asked)
            assert len(asked) > 0
            # The first table is still reached as before.
            found = vl.Table.open("s3://tables/t").append(vl.ndjson(tmp_path / "a.ndjson"))
            assert found.version == 2


def test_no_token_of_the_environment_goes_with_another_pair_of_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    with signed_by() as (endpoint, asked):
        with pytest.raises(VariantLakeError):
            vl.Table.open("s3://token/t", storage_options=keys(endpoint))
        assert {each.get("x-amz-security-token") for each in asked} == {None}


def test_secrets_are_in_no_repr_log_error_or_pickle(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with running() as one:
        given = {**one, "AWS_SECRET_ACCESS_KEY": SECRET, "VARIANTLAKE_RETRY_SECONDS": "0"}
        table = vl.Table.create("s3://tables/u", "event VARIANT", storage_options=given)
        done = table.append([{"a": 1}])
        with pytest.raises(VariantLakeError) as missing:
            vl.Table.open("s3://tables/nothing")
        shown = [repr(table), repr(table.snapshot.store), repr(done), repr(table.scan())]
        shown += [repr(missing.value), str(missing.value), missing.value.hint, caplog.text]
        sent = [pickle.dumps(each) for each in (table, table.scan(), done, missing.value)]
    with pytest.raises(VariantLakeError) as failed:
        vl.Table.open("s3://tables/u")
    shown += [repr(failed.value), str(failed.value), str(failed.value.__cause__)]
    assert not [each for each in shown if SECRET in each]
    assert not [each for each in sent if SECRET.encode() in each]
    for wrong in ({"AWS_SECRET": SECRET}, [SECRET]):
        with pytest.raises(InvalidValue) as refused:
            vl.Table.open("s3://tables/u", storage_options=wrong)  # type: ignore[arg-type] # wrong on purpose
        assert SECRET not in f"{refused.value!r}{refused.value.hint}"


def test_a_bucket_has_its_own_credentials_and_shares_settings() -> None:
    set_storage_options(
        {
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SESSION_TOKEN": "b",
            "AWS_REGION": "r",
            "AZURE_STORAGE_TOKEN": "t",
        }
    )
    reach_with("s3://one/x", {"aws_endpoint": "http://e", "AWS_ACCESS_KEY_ID": "c"})
    reach_with("s3://two/x", {"AWS_REGION": "other"})
    one, two = storage_options("s3a://one/y/z"), storage_options("s3://two")
    assert (one["AWS_ACCESS_KEY_ID"], one["AWS_REGION"], one["AWS_ENDPOINT"]) == (
        "c",
        "r",
        "http://e",
    )
    assert ("AWS_SESSION_TOKEN" in one, one["AZURE_STORAGE_TOKEN"]) == (False, "t")
    assert (two["AWS_ACCESS_KEY_ID"], two["AWS_REGION"]) == ("a", "other")
    assert storage_options("s3://three") == storage_options()
    sent = options_to_send()
    reach_with("s3://one/x", {})
    set_storage_options({})
    take_options(sent)
    assert (storage_options("s3://one"), storage_options("s3://two")) == (one, two)


URL = "s3://verb/a.parquet"
VERBS: dict[str, Callable[[vl.Table, Options], object]] = {
    "append": lambda t, o: t.append(URL, storage_options=o),
    "append of several": lambda t, o: t.append([URL, URL], storage_options=o),
    "stage": lambda t, o: t.stage(URL, storage_options=o),
    "overwrite": lambda t, o: t.overwrite(URL, storage_options=o),
    "merge": lambda t, o: t.merge(URL, "t.id = s.id", storage_options=o),
    "builder": lambda t, o: (
        t.merge_builder(URL, "t.id = s.id", storage_options=o).when_matched_delete().execute()
    ),
    "upsert": lambda t, o: t.upsert(URL, "id", storage_options=o),
    "autoload": lambda t, o: t.autoload(URL, storage_options=o),
    "autoload of a path": lambda t, o: vl.autoload(t, URL, storage_options=o),
    "clone": lambda t, o: t.clone(URL, deep=True, storage_options=o),
    "convert": lambda t, o: vl.convert(t, URL, storage_options=o),
    "mirror": lambda t, o: vl.mirror(t, URL, "event:a::int AS a", storage_options=o),
    "profile": lambda _, o: vl.profile(URL, storage_options=o),
    "polars": lambda _, o: vl.scan_polars(URL, storage_options=o),
    "duckdb": lambda _, o: vl.duckdb.attach(None, "t", URL, storage_options=o),  # type: ignore[arg-type]  # not reached
    "read_table": lambda _, o: vl.parquet.read_table(URL, storage_options=o),
    "iter_batches": lambda _, o: next(vl.parquet.iter_batches(URL, storage_options=o)),
    "read_paths": lambda _, o: vl.parquet.read_paths(URL, {"a": "event:a"}, storage_options=o),
    "iter_paths": lambda _, o: next(
        vl.parquet.iter_paths(URL, {"a": "event:a"}, storage_options=o)
    ),
    "find_variants": lambda _, o: vl.parquet.find_variants(URL, storage_options=o),
    "inspect_file": lambda _, o: vl.parquet.inspect_file(URL, storage_options=o),
    "why": lambda _, o: vl.parquet.why(URL, "event", storage_options=o),
    "check_file": lambda _, o: next(vl.parquet.check_file(URL, storage_options=o)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_that_name_a_location_take_options(verb: str, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, event VARIANT")
    table.append([{"id": 1, "event": {"a": 1}}])
    dead = keys("http://127.0.0.1:1", "of-the-verb") | {"VARIANTLAKE_RETRY_SECONDS": "0"}
    with pytest.raises(StoreFailed):
        VERBS[verb](table, dead)
    assert storage_options("s3://verb")["AWS_ACCESS_KEY_ID"] == "of-the-verb"
    for wrong in ({"AWS_SECRET": SECRET}, [SECRET]):
        with pytest.raises(InvalidValue, match="storage option"):
            VERBS[verb](table, wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_options_for_what_is_in_memory_are_refused(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    with pytest.raises(InvalidValue, match="this is a dict"):
        table.append({"a": 1}, storage_options={"AWS_REGION": "x"})


def test_options_for_a_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="object stores"):
        vl.Table.open(tmp_path, storage_options={"AWS_REGION": "x"})
