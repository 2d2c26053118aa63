"""Actions: strict on what the protocol names, blind to what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.delta.tables import PROTOCOL, add, metadata, remove
from variantlake.delta.actions import actions as log_actions
from variantlake.delta.actions.actions import (
    AddFile,
    CommitInfo,
    Protocol,
    UnknownAction,
    parse_action,
    parse_log,
)
from variantlake.errors import LimitExceeded, MalformedLog

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
VECTOR |= {"sizeInBytes": 40, "cardinality": 6}
FULL = add(
    "a%20b.parquet",
    partitionValues={"day": None, "p": "x"},
    stats="{}",
    tags={"k": "v"},
    deletionVector=VECTOR,
    baseRowId=4071,
    defaultRowCommitVersion=41,
    clusteringProvider="liquid",
)
EVERY = [
    {"protocol": PROTOCOL},
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {"metaData": {**metadata(), "name": "n", "description": "d", "partitionColumns": ["day"]}},
    FULL,
    remove("x", size=1, partitionValues={}, extendedFileMetadata=True, deletionVector=VECTOR),
    {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
    {"txn": {"appId": "a", "version": 1, "lastUpdated": 2}},
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    {"commitInfo": {"timestamp": 1, "operation": "WRITE", "anything": [1, None]}},
    {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 2}},
    {"checkpointMetadata": {"version": 1, "tags": {}}},
]


def _parse(action: Any) -> log_actions.Action | None:
    return parse_action(json.dumps(action).encode())


@pytest.mark.parametrize("action", EVERY, ids=lambda action: next(iter(action)))
def test_every_action_comes_back_as_it_was(action: dict[str, Any]) -> None:
    parsed = _parse(action)
    assert parsed is not None
    assert json.loads(log_actions.serialise([parsed])) == action


def test_a_deletion_vector_has_the_id_of_the_protocol() -> None:
    parsed = _parse(FULL)
    assert isinstance(parsed, AddFile)
    assert parsed.key == ("a%20b.parquet", "uab^-aqEH.-t@S}K{vb[*k^@4")


@pytest.mark.parametrize("action", [{}, {"add": None}, {"newAction": None}])
def test_a_line_without_an_action_is_ignored(action: dict[str, Any]) -> None:
    assert _parse(action) is None


@pytest.mark.parametrize("action", [{"newAction": {"x": 1}}, {"newAction": 1, "protocol": None}])
def test_of_an_unknown_action_the_name_is_kept(action: dict[str, Any]) -> None:
    assert _parse(action) == UnknownAction("newAction")


def test_unknown_fields_are_ignored() -> None:
    assert _parse({"protocol": {**PROTOCOL, "new": 1}}) == _parse({"protocol": PROTOCOL})


def _without(action: dict[str, Any], field: str) -> dict[str, Any]:
    ((name, fields),) = action.items()
    return {name: {key: value for key, value in fields.items() if key != field}}


MALFORMED = [
    (add(5), "path is int"),  # type: ignore[arg-type]  # wrong on purpose
    (add("x", size="10"), "size is str"),
    (add("x", size=1.0), "size is float"),
    (add("x", size=True), "size is bool"),
    (add("x", size=-1), "negative"),
    (add("x", size=2**64), "size is"),
    (add("x", partitionValues=[]), "partitionValues is list"),
    (add("x", partitionValues={"a": 1}), "a value in partitionValues is int"),
    (add("x", dataChange="true"), "dataChange is str"),
    (add("x", stats={}), "stats is dict"),
    (add("x", tags={"a": 1}), "a value in tags is int"),
    (add("x", deletionVector="v"), "deletionVector is str"),
    (add("x", deletionVector={**VECTOR, "storageType": "z"}), "storage type 'z'"),
    (_without(add("x"), "path"), "path is missing"),
    (_without(add("x"), "size"), "size is missing"),
    (_without(add("x"), "partitionValues"), "partitionValues is missing"),
    (_without(add("x"), "modificationTime"), "modificationTime is missing"),
    ({"add": []}, "add is not an object"),
    ({"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}}, "minReaderVersion is str"),
    ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}, "no readerFeatures"),
    (_without({"protocol": PROTOCOL}, "writerFeatures"), "no writerFeatures"),
    ({"protocol": {**PROTOCOL, "readerFeatures": [1]}}, "readerFeatures is list"),
    ({"metaData": {**metadata(), "format": {"provider": "orc"}}}, "not Parquet"),
    ({"metaData": {**metadata(), "format": "parquet"}}, "format is str, expected an object"),
    (_without({"metaData": metadata()}, "configuration"), "configuration is missing"),
    ({"txn": {"appId": "a", "version": None}}, "version is missing"),
    ({"domainMetadata": {"domain": "a", "configuration": {}, "removed": False}}, "is dict"),
    ({**add("x"), **remove("y")}, "two actions"),
]


@pytest.mark.parametrize(("action", "message"), MALFORMED)
def test_a_known_field_of_a_wrong_type_is_refused(action: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedLog, match=message):
        _parse(action)


@pytest.mark.parametrize("line", [b"{", b'{"add":{"path":"x"', b"[]", b"1", b"\xff", b'"add"'])
def test_a_line_that_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedLog):
        parse_action(line)


def test_an_error_names_the_file_and_the_line() -> None:
    lines = json.dumps(add("x")) + "\n\n" + json.dumps(add("y", size="1")) + "\n"
    with pytest.raises(MalformedLog) as caught:
        list(parse_log([lines.encode()], "log/0.json"))
    assert (caught.value.file, caught.value.line) == ("log/0.json", 3)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_log_may_come_in_pieces_of_any_size(size: int) -> None:
    text = b"\n".join(json.dumps(add(f"f{i}")).encode() for i in range(3)) + b"\r\n"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    found = list(parse_log(pieces, "f"))
    assert [action.path for action in found if isinstance(action, AddFile)] == ["f0", "f1", "f2"]


def test_a_huge_line_is_refused_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_actions, "MAX_LINE_BYTES", 1000)
    pieces = (b"x" * 100 for _ in range(10**9))
    with pytest.raises(LimitExceeded) as caught:
        list(parse_log(pieces, "log/0.json"))
    assert (caught.value.file, caught.value.line) == ("log/0.json", 1)


def test_commit_information_is_free_form() -> None:
    info = CommitInfo({"txnId": 5, "timestamp": "now", "operation": None, "inCommitTimestamp": 3})
    assert (info.txn_id, info.operation) == (None, None)
    assert info.in_commit_timestamp == 3


def test_feature_lists_are_left_out_where_there_are_none() -> None:
    assert Protocol(1, 2).to_json() == {"minReaderVersion": 1, "minWriterVersion": 2}
