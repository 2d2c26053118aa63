"""`commit_properties`: every verb that writes takes them, and the history says them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.cli.registry import COMMITTING
from variantlake.errors import InvalidValue

SAID: Any = {"commit_properties": {"job": "nightly", "mode": "mine"}}
Verb = Callable[[vl.Table, Path], object]


def _retried(table: vl.Table, place: Path) -> None:
    (place / "files" / "bad.ndjson").write_text("{")
    table.autoload(place / "files", settle=0)
    table.retry_loads(**SAID)


VERBS: dict[str, Verb] = {
    "add_column": lambda t, _: t.add_column("x INT", **SAID),
    "add_constraint": lambda t, _: t.add_constraint("c", "n >= 0", **SAID),
    "alter": lambda t, _: t.alter("ADD COLUMN x INT", **SAID),
    "analyze": lambda t, _: t.analyze(**SAID),
    "append": lambda t, _: t.append([{"n": 9, "event": {"a": 9}}], **SAID),
    "autoload": lambda t, p: t.autoload(p / "files", settle=0, **SAID),
    "change_type": lambda t, _: t.change_type("n", "BIGINT", enable_type_widening=True, **SAID),
    "cluster": lambda t, _: t.cluster(**SAID),
    "delete": lambda t, _: t.delete("n = 1", **SAID),
    "drop_columns": lambda t, _: t.drop_columns("kind", enable_column_mapping=True, **SAID),
    "drop_constraint": lambda t, _: (
        t.add_constraint("c", "n >= 0"),
        t.drop_constraint("c", **SAID),
    ),
    "drop_feature": lambda t, _: t.drop_feature(**SAID),
    "drop_not_null": lambda t, _: (t.set_not_null("n"), t.drop_not_null("n", **SAID)),
    "erase": lambda t, _: t.erase("n = 1", **SAID),
    "merge": lambda t, _: t.merge([{"n": 1, "kind": "m"}], "t.n = s.n", UPDATE, **SAID),
    "move_column": lambda t, _: t.move_column("kind", **SAID),
    "optimize": lambda t, _: t.optimize(**SAID),
    "overwrite": lambda t, _: t.overwrite([{"n": 9, "event": {"a": 9}}], **SAID),
    "rename_column": lambda t, _: t.rename_column("kind", "k", enable_column_mapping=True, **SAID),
    "reshred": lambda t, _: t.reshred("a STRING", **SAID),
    "restore": lambda t, _: t.restore(1, **SAID),
    "retry_loads": _retried,
    "set_clustering": lambda t, _: t.set_clustering("kind", **SAID),
    "set_comment": lambda t, _: t.set_comment("words", **SAID),
    "set_contract": lambda t, _: t.set_contract({"properties": {}}, **SAID),
    "set_default": lambda t, _: t.set_default("kind", "'a'", **SAID),
    "set_not_null": lambda t, _: t.set_not_null("n", **SAID),
    "set_properties": lambda t, _: t.set_properties({"a.b": "c"}, **SAID),
    "tag": lambda t, _: t.tag("name", 1, **SAID),
    "unset_properties": lambda t, _: (
        t.set_properties({"a": "b"}),
        t.unset_properties("a", **SAID),
    ),
    "unshred": lambda t, _: t.unshred(**SAID),
    "untag": lambda t, _: (t.tag("name"), t.untag("name", **SAID)),
    "update": lambda t, _: t.update({"kind": "u"}, "n = 1", **SAID),
    "upsert": lambda t, _: t.upsert([{"n": 1, "kind": "u", "event": 1}], "n", **SAID),
    "vacuum": lambda t, _: t.vacuum(**SAID),
}
UPDATE = "WHEN MATCHED THEN UPDATE SET kind = s.kind"


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    table = vl.Table.create(
        tmp_path / "t",
        "n INT, kind STRING, event VARIANT",
        shredding={"event": "a BIGINT"},
        cluster_by="n",
        properties={"variantlake.clusterBy": "n"},
    )
    for n in range(2):  # files that overlap, which a clustering puts in order
        rows = [{"n": each, "kind": "k", "event": {"a": each}} for each in (n, 9 - n)]
        table.append(rows)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x.ndjson").write_text('{"a": 1}\n')
    return table


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_them_in_its_commit(table: vl.Table, tmp_path: Path, name: str) -> None:
    before = table.version
    VERBS[name](table, tmp_path)
    if name == "analyze":  # there is nothing to be added to these files
        assert table.version == before
        return
    entry = table.history(1)[0]
    assert entry.commit_properties == SAID["commit_properties"]
    assert json.loads(entry.user_metadata or "") == SAID["commit_properties"]
    parameters = entry.info["operationParameters"]
    assert parameters["job"] == "nightly"
    # What the operation says of itself is not hidden by what the user says.
    modes = {"append": "Append", "overwrite": "Overwrite", "autoload": "Append"}
    assert parameters["mode"] == modes.get(name, "mine")


def test_every_verb_that_writes_is_tried() -> None:
    """And has the keyword in its signature, or among its options."""
    names = set()
    for name, method in inspect.getmembers(vl.Table, inspect.isfunction):
        text = str(inspect.signature(method))
        if "commit_properties" in text or name in ("append", "overwrite", "autoload"):
            names.add(name)
    assert names - {"create", "clone", "merge_builder"} == set(VERBS)


def test_other_ways_to_commit(table: vl.Table, tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path / "m", "n INT", **SAID)
    assert made.history()[0].commit_properties["job"] == "nightly"
    table.clone(tmp_path / "c", **SAID)
    assert vl.Table.open(tmp_path / "c").history()[-1].commit_properties["job"] == "nightly"
    table.stage([{"n": 5, "event": 5}]).publish(**SAID)
    assert table.refresh().history(1)[0].commit_properties["job"] == "nightly"
    builder = table.merge_builder([{"n": 1}], "t.n = s.n", **SAID)
    builder.when_matched_delete().execute()
    assert table.history(1)[0].commit_properties["job"] == "nightly"
    vl.mirror(table, tmp_path / "mirror", "n", **SAID)
    mirrored = vl.Table.open(tmp_path / "mirror").history()
    assert all(each.commit_properties["job"] == "nightly" for each in mirrored)


def test_they_end_with_their_call(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidQuery):
        table.delete("nonsense = 1", **SAID)
    table.delete("n = 1")
    assert table.history(1)[0].user_metadata is None
    assert table.history(1)[0].commit_properties == {}


def test_a_text_stands_as_it_is(table: vl.Table) -> None:
    table.delete("n = 1", commit_properties="by hand")
    entry = table.history(1)[0]
    assert (entry.user_metadata, entry.commit_properties) == ("by hand", {})


@pytest.mark.parametrize("given", [{"a": 1}, {1: "a"}, 7, ["a"], {"a": "\ud800"}])
def test_what_a_log_cannot_hold_is_refused(table: vl.Table, given: Any) -> None:
    version = table.version
    with pytest.raises(InvalidValue, match="commit_properties is"):
        table.delete("n = 1", commit_properties=given)
    assert table.refresh().version == version


def test_the_command_takes_them(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ("--commit-property", "job=night=ly", "--commit-property", "by=me")
    done = run(monkeypatch, capfd, "delete", table.uri, "--where", "n = 1", *given)
    assert (done.code, done.err) == (0, "")
    shown = run(monkeypatch, capfd, "history", table.uri, "--json", "--limit", 1)
    assert json.loads(json.loads(shown.out)["user_metadata"]) == {"job": "night=ly", "by": "me"}
    wrong = run(monkeypatch, capfd, "set", table.uri, "a.b=c", "--commit-property", "job")
    assert wrong.code == 2
    assert "NAME=TEXT" in wrong.err
    assert {"delete", "vacuum", "ingest"} <= COMMITTING
    refused = run(monkeypatch, capfd, "cat", table.uri, *given)
    assert refused.code == 2
