"""Refreshed step by step, a table has the files that it has when all of its log is read."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.tables import add, first_commit, remove, write_log
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile, parse_log
from variantlake.delta.log.files import path_index
from variantlake.delta.log.files.logical_files import adds_of, files_of
from variantlake.delta.log.files.path_index import PathIndex, hashes_of
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import LogState, apply_commits
from variantlake.delta.log.snapshot import Snapshot
from variantlake.kernels.log import path_hashes

VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
NAMES = ["a", "b%20c", "b%2520c", "é", "d/e", "c"]


def _commit() -> st.SearchStrategy[list[dict[str, Any]]]:
    makers = {
        "add": lambda name: [add(name)],
        "remove": lambda name: [remove(name)],
        "mark": lambda name: [remove(name), add(name, deletionVector=VECTOR)],
        "unmark": lambda name: [remove(name, deletionVector=VECTOR), add(name)],
    }
    return st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(makers))).map(
        lambda found: [action for name, kind in found.items() for action in makers[kind](name)]
    )


def _files(state: LogState) -> list[Any]:
    return sorted((file.path, file.deletion_vector is None) for file in adds_of(state.files))


@settings(max_examples=50 * MORE, deadline=None)
@given(commits=st.lists(_commit(), min_size=1, max_size=6))
def test_commits_one_by_one_make_the_state_that_all_make(
    commits: list[list[dict[str, Any]]],
) -> None:
    lines = [[json.dumps(action).encode() + b"\n" for action in commit] for commit in commits]
    actions = [list(parse_log(each, "log")) for each in lines]
    state = LogState()
    for number, commit in enumerate(actions, start=1):
        state = apply_commits(state, [commit])
        assert _files(state) == _files(apply_commits(LogState(), actions[:number]))


def test_what_a_commit_does_not_touch_is_not_hashed_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    plain = path_hashes.hash_texts

    def counted(data: Any, offsets: Any, hashes: Any) -> None:
        hashed.append(len(hashes))
        plain(data, offsets, hashes)

    monkeypatch.setattr(path_index, "hash_texts", counted)
    many = [add(str(number)) for number in range(100)]
    snapshot = Snapshot.read(write_log(tmp_path, first_commit(*many)))
    for number in range(3):
        (tmp_path / commit_path(number + 1)).write_text(json.dumps(add(f"new{number}")))
        hashed.clear()
        snapshot = snapshot.refresh()
        # The commit's own, and the batch that came before; that of the table when it was read.
        assert hashed == ([1] if number == 0 else [1, 1])
    assert snapshot.files.num_rows == 103
    assert pickle.loads(pickle.dumps(snapshot.index)).of(snapshot.files)._batches == {}  # noqa: S301


def test_an_index_answers_for_slices_and_nothing() -> None:
    files = files_of([AddFile(name, 1, 1) for name in "abc"])
    (whole,) = files.listed.to_batches()
    index = PathIndex()
    assert index.may_hold(files, whole.slice(1), hashes_of(pa.array(["c"])))
    assert not index.may_hold(files, whole.slice(1), hashes_of(pa.array(["a"])))
    assert not index.may_hold(files, whole.slice(3), hashes_of(pa.array(["a"])))
    assert not index.may_hold(files, whole, np.zeros(0, np.int64))
