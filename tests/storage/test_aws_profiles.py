"""Profiles of Amazon's tools: whose keys, region and endpoint are taken, and when."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import variantlake as vl
from variantlake.errors import StoreFailed
from variantlake.storage import aws_profiles
from variantlake.storage import options as module
from variantlake.storage.options import (
    fall_back_to,
    options_to_send,
    reach_with,
    set_storage_options,
    storage_options,
    take_options,
)

SECRET = "a-very-secret-key"  # noqa: S105 - the test looks for it
CREDENTIALS = f"""\
[default]
aws_access_key_id = of-default
aws_secret_access_key = x
[partner]
aws_access_key_id = of-partner
aws_secret_access_key = {SECRET}
"""
CONFIG = """\
[default]
region = eu-central-1
[profile partner]
region = us-west-2
endpoint_url = https://partner.example
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = partner
region = eu-north-1
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home folder with profiles, in an environment that says nothing of clouds."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "VARIANTLAKE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(CREDENTIALS)
    (folder / "config").write_text(CONFIG)
    yield
    set_storage_options({})
    fall_back_to({})
    module._of_buckets.clear()
    aws_profiles._of_commands.clear()


def key(url: str = "s3://one/t") -> str | None:
    return storage_options(url).get("AWS_ACCESS_KEY_ID")


def test_the_default_profile_signs_if_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (key(), storage_options()["AWS_REGION"]) == ("of-default", "eu-central-1")
    fall_back_to({"AWS_ACCESS_KEY_ID": "of-spark"})
    assert key() == "of-spark"
    fall_back_to({})
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/keys")
    assert key() is None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    assert key() == "of-environment"


def test_a_named_profile_wins_over_the_keys_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "partner")
    assert storage_options("s3://one/t") == {
        "AWS_ACCESS_KEY_ID": "of-partner",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-west-2",
        "AWS_ENDPOINT": "https://partner.example",
    }
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-environment")
    assert key() == "of-environment"  # as Amazon's own tools
    monkeypatch.setenv("AWS_REGION", "of-environment")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://environment.example")
    set_storage_options({"AWS_PROFILE": "partner"})
    found = storage_options()
    assert (found["AWS_ACCESS_KEY_ID"], found["AWS_REGION"]) == ("of-partner", "of-environment")
    assert found["AWS_ENDPOINT_URL"] == "https://environment.example"
    assert not {"AWS_SESSION_TOKEN", "AWS_ENDPOINT", "AWS_PROFILE"} & found.keys()


def test_two_profiles_in_one_process_reach_tasks_as_keys() -> None:
    reach_with("s3://theirs/x", {"AWS_PROFILE": "partner"})
    assert (key("s3://ours/t"), key("s3://theirs/t")) == ("of-default", "of-partner")
    sent = options_to_send()
    assert "AWS_PROFILE" not in " ".join(sent)
    reach_with("s3://theirs/x", {})
    take_options(sent)
    assert (key("s3://ours/t"), key("s3://theirs/t")) == ("of-default", "of-partner")


def test_other_files_and_their_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.write_text("[default]\naws_access_key_id=a\naws_secret_access_key=b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(other))
    assert key() == "a"
    other.write_text("[default]\naws_access_key_id=newer\naws_secret_access_key=b\n")
    assert key() == "newer"
    other.write_text(f"aws_secret_access_key = {SECRET}\n")
    with pytest.raises(StoreFailed, match="does not read") as damaged:
        key()
    assert SECRET not in f"{damaged.value!r}{damaged.value.__cause__!r}"


def test_a_profile_that_nobody_has_names_those_that_there_are() -> None:
    with pytest.raises(StoreFailed, match="no AWS profile 'stranger'") as caught:
        vl.Table.open("s3://one/t", storage_options={"AWS_PROFILE": "stranger"})
    assert caught.value.hint.endswith(": default, partner, role")


def aws(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A command `aws` that does this, and counts how often."""
    command = folder / "bin" / "aws"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{script}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)


def test_a_profile_of_a_role_signs_in_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    keys = {"AccessKeyId": "of-role", "SecretAccessKey": "s", "SessionToken": "t"}
    aws(tmp_path, monkeypatch, f"echo '{json.dumps({**keys, 'Expiration': soon.isoformat()})}'")
    monkeypatch.setenv("AWS_PROFILE", "role")
    found = [storage_options() for _ in range(3)]
    assert found[0] == found[2]
    assert (found[0]["AWS_SESSION_TOKEN"], found[0]["AWS_REGION"]) == ("t", "eu-north-1")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["configure export-credentials --profile role --format process"]
    # Shortly before the keys end they are asked for again.
    options, _ = next(iter(aws_profiles._of_commands.values()))
    aws_profiles._of_commands[next(iter(aws_profiles._of_commands))] = (
        options,
        dt.datetime.now(dt.UTC),
    )
    storage_options()
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_a_login_that_fails_shows_its_complaint_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    aws(tmp_path, monkeypatch, f"echo {SECRET}; echo 'the session has expired' >&2; exit 255")
    with pytest.raises(StoreFailed, match="the session has expired") as failed:
        vl.Table.open("s3://one/t", storage_options={"AWS_PROFILE": "role"})
    aws(tmp_path, monkeypatch, f"echo {SECRET}")
    with pytest.raises(StoreFailed, match="JSONDecodeError") as strange:
        vl.Table.open("s3://one/t")
    for error in (failed.value, strange.value):
        shown = f"{error!r}{error.__cause__!r}{error.hint}{caplog.text}"
        assert SECRET not in shown
        assert SECRET.encode() not in pickle.dumps(error)
    assert "aws sso login" in failed.value.hint


def test_without_the_command_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StoreFailed, match="the command `aws`"):
        vl.Table.open("s3://one/t", storage_options={"AWS_PROFILE": "role"})
    assert key("s3://two/t") == "of-default"


def test_a_default_profile_that_must_sign_in_starts_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws" / "credentials").write_text("")
    (tmp_path / ".aws" / "config").write_text("[default]\nsso_session = x\nregion = here\n")
    aws(tmp_path, monkeypatch, "echo '{}'")
    with pytest.raises(StoreFailed, match="no credentials") as caught:
        vl.Table.open("s3://one/t")
    assert "AWS_PROFILE" in caught.value.hint
    assert storage_options()["AWS_REGION"] == "here"
    assert not (tmp_path / "calls").exists()
