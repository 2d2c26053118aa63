"""Contracts of tables: what loads do with documents that break them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.ingest import append
from variantlake.ingest.commit_load import commit_load

SCHEMA = {
    "type": "object",
    "required": ["kind", "user"],
    "properties": {
        "kind": {"enum": ["click", "view"]},
        "n": {"type": "integer", "minimum": 0, "maximum": 1e3},
        "user": {"properties": {"mail": {"pattern": "^[^@]+@[^@]+$"}}},
        "tags": {"items": {"type": "string"}},
    },
}
GOOD = {"kind": "click", "n": 1, "user": {"mail": "a@b"}, "tags": ["x"]}
BAD = [
    ({"kind": "click"}, '$.user is missing, and the contract says required "user"'),
    (GOOD | {"kind": "buy"}, '$.kind is "buy", and the contract says enum ["click", "view"]'),
    (GOOD | {"n": -1}, "$.n is -1, and the contract says minimum 0"),
    (GOOD | {"n": 1.5}, "$.n is 1.5, and the contract says type integer"),
    (GOOD | {"user": {"mail": "x" * 99}}, f'$.user.mail is "{"x" * 58}…, and the contract says'),
    (GOOD | {"tags": ["a", {"b": 1}]}, "$.tags[1] is an object of 1 key, and the contract says"),
]


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "event VARIANT")


def _lines(*documents: Any) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in documents)


def _quarantined(result: vl.LoadResult) -> list[dict[str, Any]]:
    assert result.quarantine is not None
    files = sorted(Path(result.quarantine).glob("*.ndjson"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _kinds(table: vl.Table) -> list[str | None]:
    found: list[str | None] = table.scan(["event:kind::string AS k"]).to_arrow()["k"].to_pylist()
    return found


def test_what_breaks_a_contract_goes_to_the_quarantine(table: vl.Table, tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_bytes(_lines(GOOD, *(bad for bad, _ in BAD), GOOD) + b"{no json\n")
    done = table.append(file, contract=SCHEMA)
    assert (done.rows_written, done.rows_bad) == (2, len(BAD) + 1)
    left = [each for each in _quarantined(done) if "contract" in each["reason"]]
    for number, (each, (document, reason)) in enumerate(zip(left, BAD, strict=True)):
        assert each["reason"].startswith(reason)
        assert (each["file"], each["line"], each["column"]) == (str(file), number + 2, 1)
        assert json.loads(each["text"]) == document
    assert table.contract == vl.Contract(SCHEMA, 1)
    entry = table.history(1)[0]
    assert entry.info["operationParameters"]["contract"] == '{"event":1}'
    assert entry.info["operationMetrics"]["numQuarantinedRows"] == str(len(BAD) + 1)


@pytest.mark.parametrize("form", ["arrow", "python", "joined", "array"])
def test_every_kind_of_load_uses_the_contract_of_the_table(
    table: vl.Table, tmp_path: Path, form: str
) -> None:
    table.set_contract(SCHEMA)
    documents = [GOOD, BAD[0][0], GOOD, BAD[2][0]]
    data: Any
    if form == "arrow":
        data = pa.table({"event": [orjson.dumps(each).decode() for each in documents]})
    elif form == "python":
        data = documents
    elif form == "array":
        Path(tmp_path, "a.json").write_bytes(orjson.dumps(documents))
        data = vl.json_array(tmp_path / "a.json")
    else:
        for number, each in enumerate(documents):
            Path(tmp_path, f"{number}.ndjson").write_bytes(_lines(each))
        data = str(tmp_path / "*.ndjson")
    done = table.append(data)
    assert (done.rows_written, done.rows_bad) == (2, 2)
    assert [each["reason"].partition("is")[0].split()[-1] for each in _quarantined(done)] == [
        "$.user",
        "$.n",
    ]
    assert _kinds(table) == ["click", "click"]


def test_the_mode_decides_as_for_other_bad_documents(table: vl.Table, tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_bytes(_lines(GOOD, BAD[2][0]))
    with pytest.raises(vl.ContractBroken, match=r"line 2, column 1: \$\.n is -1") as raised:
        table.append(file, contract=SCHEMA, mode="strict")
    assert raised.value.file == str(file)
    with pytest.raises(vl.ContractBroken, match=r"row 1: column 'event': \$\.n is -1"):
        table.append([GOOD, BAD[2][0]], contract=SCHEMA, mode="strict")
    assert (table.version, table.contract) == (0, None)
    for data in (file, [GOOD, BAD[2][0]]):
        done = table.append(data, contract=SCHEMA, mode="null")
        assert (done.rows_written, done.rows_bad, done.quarantine) == (2, 1, None)
    assert sorted(_kinds(table), key=str) == [None, None, "click", "click"]
    with pytest.raises(vl.LimitExceeded, match="max_bad=0"):
        table.append(file, contract=SCHEMA, max_bad=0)


def test_records_of_other_forms_are_checked(table: vl.Table, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("kind,n\nclick,1\nclick,-1\nview,2\n")
    schema = {"properties": {"n": {"minimum": 0}}}
    done = table.append(file, contract=schema)
    assert (done.rows_written, done.rows_bad) == (2, 1)
    assert json.loads(_quarantined(done)[0]["text"]) == {"kind": "click", "n": -1}
    assert table.append(file, mode="null").rows_bad == 1
    assert sorted(_kinds(table), key=str) == [None, "click", "click", "view", "view"]


def test_a_contract_has_versions(table: vl.Table) -> None:
    assert table.set_contract(SCHEMA).version == 1
    assert table.set_contract(SCHEMA).version == 1  # it is that already
    table.append([GOOD], contract={"required": ["kind"]})
    assert table.contract == vl.Contract({"required": ["kind"]}, 2)
    table.set_contract(None)
    assert vl.Table.open(table.uri).contracts == {}
    table.set_contract(json.dumps(SCHEMA))
    assert table.contract == vl.Contract(SCHEMA, 4)
    assert [each.operation for each in table.history()].count("SET TBLPROPERTIES") == 3
    assert vl.Table.open(table.uri, 1).contract == vl.Contract(SCHEMA, 1)
    assert table.append([{"kind": "click"}]).rows_bad == 1
    with pytest.raises(vl.InvalidValue, match="set by writers alone"):
        table.set_properties({"variantlake.contract.event": "{}"})
    assert table.restore(1).version is not None
    assert table.contract == vl.Contract(SCHEMA, 1)


def test_autoload_checks_and_keeps_a_contract(tmp_path: Path) -> None:
    source, table = tmp_path / "in", str(tmp_path / "t")
    source.mkdir()
    Path(source, "a.ndjson").write_bytes(_lines(GOOD, BAD[1][0]))
    done = vl.autoload(table, str(source), contract=SCHEMA, settle="0s")
    assert (done.rows_written, done.rows_bad, done.files_failed) == (1, 1, 0)
    Path(source, "b.ndjson").write_bytes(_lines(BAD[1][0]))
    Path(source, "c.ndjson").write_bytes(_lines(BAD[1][0]))
    Path(source, "d.ndjson").write_bytes(_lines(GOOD))
    again = vl.autoload(table, str(source), mode="strict", settle="0s")
    assert (again.rows_written, again.files_failed) == (1, 2)


def test_rows_that_are_there_are_checked(
    table: vl.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = partial(run, monkeypatch, capfd)
    table.append([GOOD, *(bad for bad, _ in BAD), GOOD | {"n": -7}])
    table.delete("event:n::int = -7")
    report = table.check_contract(SCHEMA)
    assert (report.rows, report.broken) == (7, 6)
    assert {(each.path, each.rows) for each in report.findings} >= {("$.n", 1), ("$.tags[*]", 1)}
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(SCHEMA))
    done = command("check", table.uri, "--contract", file)
    assert done.code == 4
    assert "$.n: minimum 0: 1 row" in done.out
    assert "6 of 7 documents break the contract" in done.err
    file.write_text('{"type": "object"}')
    assert command("check", table.uri, "--contract", file).code == 0
    assert command("contract", table.uri, file).out == "version 3\n"
    assert json.loads(command("contract", table.uri).out) == {"type": "object"}
    assert command("check", table.uri, "--contract", "table").code == 0
    assert command("contract", table.uri, "--drop").code == 0
    assert command("check", table.uri, "--contract", "table").code == 1


def test_loads_of_the_command_line_take_a_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path(tmp_path, "contract.json").write_text(json.dumps(SCHEMA))
    Path(tmp_path, "a.ndjson").write_bytes(_lines(GOOD, BAD[0][0]))
    load = partial(
        run, monkeypatch, capfd, "ingest", tmp_path / "a.ndjson", tmp_path / "t", "--engine=local"
    )
    assert load("--contract", tmp_path / "contract.json").code == 0
    assert _kinds(vl.Table.open(tmp_path / "t")) == ["click"]
    assert load("--mode", "strict").code == 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"oneOf": []}}}, r"keyword 'oneOf' at #/properties/a, which is not"),
        ({"patern": "a"}, "keyword 'patern'"),
        ({"type": "text"}, "'type' at # is 'text', expected one of"),
        ({"pattern": "(?=a)"}, "no regular expression of RE2"),
        ({"minimum": "1"}, "expected a number"),
        ({"enum": [[1]]}, "expected texts, numbers and null"),
        ({"required": "a"}, "expected a list of keys"),
        ({"additionalProperties": {}}, "expected true or false"),
        ({"items": False}, "a schema is an object or true"),
        ("{", "is not JSON"),
    ],
)
def test_a_schema_that_is_not_wholly_checked_is_refused(
    table: vl.Table, schema: Any, message: str
) -> None:
    with pytest.raises(vl.InvalidSchema, match=message):
        table.set_contract(schema)
    with pytest.raises(vl.InvalidSchema, match=message):
        table.append([GOOD], contract=schema)
    assert table.refresh().version == 0


def test_a_file_that_is_not_there_is_no_contract(table: vl.Table) -> None:
    with pytest.raises(vl.MissingSource, match="the contract cannot be read"):
        table.set_contract("no/such.json")


def test_of_several_columns_one_is_named(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "a VARIANT, b VARIANT")
    with pytest.raises(vl.InvalidSchema, match="a contract is of one VARIANT column"):
        table.set_contract(SCHEMA)
    table.set_contract({"type": "integer"}, column="b")
    assert table.contracts == {"b": vl.Contract({"type": "integer"}, 1)}
    done = table.append(pa.table({"a": ["{}", "{}"], "b": ["1", '"x"']}))
    assert (done.rows_written, done.rows_bad) == (1, 1)
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.drop_columns("b")
    assert table.contracts == {}
    assert not [name for name in table.properties if "contract" in name]


def test_a_profile_is_a_contract_that_its_documents_fulfil(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_bytes(_lines(GOOD, GOOD | {"n": "text"}, {"kind": None}))
    schema = vl.profile(file).to_json_schema()
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    assert table.append(file, contract=schema).rows_bad == 0
    assert table.append([{"kind": 3}]).rows_bad == 1


def test_a_load_that_another_contract_overtook_is_a_conflict(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "commit_load", _after(lambda: table.set_contract(SCHEMA)))
    with pytest.raises(vl.CommitConflict):
        vl.Table.open(table.uri).append([GOOD | {"n": -1}])
    assert _kinds(table.refresh()) == []


def _after(change: Callable[[], object]) -> Callable[..., vl.LoadResult]:
    def call(*arguments: Any, **options: Any) -> vl.LoadResult:
        change()
        return commit_load(*arguments, **options)

    return call


def test_a_staged_load_is_checked_and_brings_no_contract(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidValue, match="a staged load cannot change"):
        table.stage([GOOD], contract=SCHEMA)
    table.set_contract(SCHEMA)
    assert table.stage([GOOD, GOOD | {"n": -1}]).rows == 1


def test_a_table_with_constraints_gets_a_contract(tmp_path: Path) -> None:
    """It changes a property alone; rows of such tables are appended by Spark."""
    table = vl.Table.create(tmp_path / "t", "id INT, event VARIANT")
    table.add_constraint("positive", "id > 0")
    assert table.set_contract({"required": ["a"]}).version == 2
    assert table.contracts["event"].version == 1
