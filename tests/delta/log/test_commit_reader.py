"""Commits read by columns are those read action by action, and fail with the same errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.tables import add, first_commit, remove, write_log
from tests.strategies import MORE
from variantlake.delta.actions import actions as log_actions
from variantlake.delta.actions.actions import Action, AddFile, parse_log
from variantlake.delta.log import commit_reader, snapshot_state
from variantlake.delta.log.commit_reader import read_by_columns
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import LimitExceeded, MalformedLog, VariantLakeError

TEXTS = st.sampled_from(["", "a", "é", '"', "\\", "\n", "\U0001f600", "x" * 100, "%20"])
MAPS = st.dictionaries(TEXTS, TEXTS | st.none(), max_size=3)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, -1, 1.5, "x", True, [], {}, {"a": 1}, {"a": {}}, 2**63, -(2**70)]
)
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """An `add` as any writer may write it, or something odd."""
    fields: dict[str, Any] = {
        "path": draw(TEXTS),
        "partitionValues": draw(MAPS),
        "size": draw(st.integers(0, 2**40)),
        "modificationTime": draw(st.integers(-5, 2**40)),
        "dataChange": draw(st.booleans()),
    }
    more = {
        "stats": TEXTS | st.none(),
        "tags": MAPS | st.none(),
        "baseRowId": st.integers(0, 9) | st.none(),
        "defaultRowCommitVersion": st.integers(0, 9),
        "clusteringProvider": TEXTS,
        "unknown": ODD,
        "deletionVector": st.sampled_from([None, VECTOR, {}]),
    }
    for name in draw(st.lists(st.sampled_from(list(more)), unique=True)):
        fields[name] = draw(more[name])
    action: dict[str, Any] = {"add": fields}
    match draw(st.integers(0, 9)):
        case 0:
            fields[draw(st.sampled_from(list(fields)))] = draw(ODD)
        case 1:
            del fields[draw(st.sampled_from(list(fields)))]
        case 2:
            action[draw(st.sampled_from(["unknown", "remove", "txn"]))] = draw(ODD)
        case 3:
            action = {"remove": {"path": "r", "dataChange": True}}
        case 4:
            return draw(st.sampled_from([b"{", b"[]", b'{"add":{"path":1,"path":"a"}}', b"  "]))
    return json.dumps(action, ensure_ascii=draw(st.booleans())).encode()


def _plain(text: bytes) -> list[Action] | VariantLakeError:
    try:
        return list(parse_log([text], "f"))
    except VariantLakeError as error:
        return error


@settings(max_examples=75 * MORE, deadline=None)
@given(made=st.lists(lines(), max_size=5), ends=st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
def test_lines_are_read_as_one_by_one(made: list[bytes], ends: bytes) -> None:
    text = ends.join(made)
    wanted = _plain(text)
    if isinstance(wanted, VariantLakeError):
        with pytest.raises(type(wanted), match=re.escape(str(wanted).partition(":")[0])):
            read_by_columns([text], "f")
        return
    table, others = read_by_columns([text[:7], text[7:]], "f")
    adds = [action for action in wanted if isinstance(action, AddFile)]
    assert [other for other in wanted if not isinstance(other, AddFile)] == others
    # Rows do not say whether they change data; the order within one commit means nothing.
    found_adds = [orjson.dumps(each.to_json() | {"dataChange": 0}) for each in adds_of(table)]
    wanted_adds = [orjson.dumps(each.to_json() | {"dataChange": 0}) for each in adds]
    assert sorted(found_adds) == sorted(wanted_adds)


@pytest.fixture
def _large_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_state, "LARGE_COMMIT", -1)


@pytest.mark.usefixtures("_large_commits")
def test_of_each_file_the_last_action_counts(tmp_path: Path) -> None:
    location = write_log(
        tmp_path,
        first_commit(add("a"), add("b"), add("c%20d")),
        [remove("a"), add("e")],
        [add("a", size=3), remove("c d")],
        [remove("b"), add("f"), add("f")],
    )
    files = {each.path: each.size for each in Snapshot.read(location).add_files()}
    assert files == {"a": 3, "e": 10, "f": 10}


@pytest.mark.usefixtures("_large_commits")
@pytest.mark.parametrize(
    ("commit", "text"),
    [
        ([add("a"), remove("a")], "adds and removes 'a'"),
        ([add("a"), remove("%61")], "adds and removes 'a'"),
        ([add("a"), add("a", size=11)], "adds 'a' twice"),
        ([{"metaData": first_commit()[1]["metaData"]}] * 2, "two metaData"),
    ],
)
def test_actions_that_contradict_each_other(
    tmp_path: Path, commit: list[dict[str, Any]], text: str
) -> None:
    with pytest.raises(MalformedLog, match=text) as error:
        Snapshot.read(write_log(tmp_path, first_commit(), commit))
    assert error.value.file.endswith("1.json")


def test_a_line_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_actions, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(commit_reader, "BLOCK_BYTES", 100)
    taken = 0

    def pieces() -> Any:
        nonlocal taken
        yield b'{"commitInfo":{}}\n'
        while True:
            taken += 1
            yield b"x" * 90

    with pytest.raises(LimitExceeded) as error:
        read_by_columns(pieces(), "f")
    assert taken < 20
    assert error.value.line == 2
