"""Schemas of a profile: the documents of the sample fulfil them, others do not."""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.errors import InvalidValue
from variantlake.report.profile import SourceProfile

DOCUMENTS = [
    {"id": 1, "kind": "a", "who": {"name": "x", "age": None}, "tags": ["p", "q"], "class": 1},
    {"id": 2, "kind": "b", "who": {"name": "y"}, "tags": [], "date": "2026-01-01", "odd key": True},
    {"id": 3, "kind": 7, "who": {"name": "z", "age": 4.5}, "items": [{"n": 1}, {"n": 2, "m": "w"}]},
]


def profiled(*documents: Any) -> SourceProfile:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.ndjson"
        file.write_text("".join(f"{json.dumps(each)}\n" for each in documents))
        return vl.profile(file)


def model(source: str, name: str = "Document") -> type[pydantic.BaseModel]:
    names: dict[str, Any] = {"__name__": "models"}
    exec(compile(source, "models.py", "exec"), names)  # noqa: S102 - it is ours
    found: type[pydantic.BaseModel] = names[name]
    found.model_rebuild(_types_namespace=names)
    return found


def test_a_json_schema_names_types_and_required_keys() -> None:
    schema = profiled(*DOCUMENTS).to_json_schema("event")
    assert schema["title"] == "event"
    assert schema["type"] == "object"
    assert schema["required"] == ["id", "kind", "who"]
    fields = schema["properties"]
    assert fields["id"] == {"type": "integer"}
    assert sorted(fields["kind"]["type"]) == ["integer", "string"]
    assert fields["who"]["required"] == ["name"]
    assert sorted(fields["who"]["properties"]["age"]["type"]) == ["null", "number"]
    assert fields["tags"] == {"type": "array", "items": {"type": "string"}}
    items = fields["items"]["items"]
    assert items["required"] == ["n"]
    assert items["properties"] == {"n": {"type": "integer"}, "m": {"type": "string"}}


def test_pydantic_models_take_the_documents_and_refuse_others() -> None:
    document = model(profiled(*DOCUMENTS).to_pydantic())
    for each in DOCUMENTS:
        document.model_validate(each)
    first: Any = document.model_validate(DOCUMENTS[0])
    assert first.field_class == 1
    assert first.who.name == "x"
    third: Any = document.model_validate(DOCUMENTS[2])
    assert third.who.age == Decimal("4.5")
    for wrong in ({"kind": "a"}, {**DOCUMENTS[0], "id": "x"}, {**DOCUMENTS[0], "who": {}}):
        with pytest.raises(pydantic.ValidationError):
            document.model_validate(wrong)


def test_ddl_has_a_column_for_each_key() -> None:
    ddl = profiled(*DOCUMENTS).to_ddl("shop.events")
    head, body = ddl.split("(", 1)
    assert head == "CREATE TABLE `shop`.`events` "
    types = parse_table_ddl(body.rsplit(")", 1)[0])
    expected = parse_table_ddl("id BIGINT, kind VARIANT, tags ARRAY<STRING>")
    kinds = {item.name: item.type for item in types.fields}
    assert all(kinds[item.name] == item.type for item in expected.fields)
    assert "`who` STRUCT<`name`: STRING, `age`: " in ddl
    mixed = profiled({"n": 1}, {"n": 2.5})
    assert "`n` DECIMAL" in mixed.to_ddl("t")
    assert mixed.to_json_schema()["properties"] == {"n": {"type": "number"}}
    with pytest.raises(InvalidValue, match="no keys"):
        profiled(1, 2).to_ddl("t")


keys = st.sampled_from(["a", "b c", "class", "list", "model_x", "json", "é", "1", "_", "date", "A"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(keys, values, max_size=5), min_size=1, max_size=5))
def test_the_documents_of_a_sample_fulfil_its_schemas(documents: list[dict[str, Any]]) -> None:
    found = profiled(*documents)
    schema = found.to_json_schema()
    document = model(found.to_pydantic())
    for each in documents:
        assert fulfils(each, schema), (each, schema)
        document.model_validate(each)


def fulfils(value: Any, schema: dict[str, Any]) -> bool:
    """JSON Schema by its text, as far as profiles have it."""
    if "anyOf" in schema:
        return any(fulfils(value, each) for each in schema["anyOf"])
    if "type" not in schema:
        return True
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kinds = {
        bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
        dict: "object", type(None): "null",
    }  # fmt: skip
    if kinds[type(value)] not in names and not (type(value) is int and "number" in names):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        inside = all(fulfils(each, known.get(key, {})) for key, each in value.items())
        return inside and all(key in value for key in schema.get("required", ()))
    items = schema.get("items", {})
    return not isinstance(value, list) or all(fulfils(each, items) for each in value)


def test_the_command_prints_each_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in DOCUMENTS))
    out = {
        form: run(monkeypatch, capfd, "profile", file, "--as", form).out
        for form in ("jsonschema", "pydantic", "ddl")
    }
    assert json.loads(out["jsonschema"])["required"] == ["id", "kind", "who"]
    assert "class Document(BaseModel):" in out["pydantic"]
    assert out["ddl"].startswith("CREATE TABLE `documents` (")
