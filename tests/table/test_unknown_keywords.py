"""An unknown keyword of any public function is refused in the name that the caller wrote."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from variantlake.errors import InvalidValue

WORD = "no_such_keyword"


def functions(owner: Any) -> dict[str, Any]:
    """What users call of a module or an object, by name."""
    names = getattr(owner, "__all__", None) or [n for n in dir(owner) if not n.startswith("_")]
    static = {name: inspect.getattr_static(owner, name, None) for name in names}
    return {
        name: getattr(owner, name)
        for name in names
        if not isinstance(static[name], property)
        and callable(getattr(owner, name))
        and not isinstance(getattr(owner, name), type)
    }


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    table = vl.Table.create(tmp_path_factory.mktemp("words") / "t", "id INT, event VARIANT")
    table.append([{"id": 1, "event": {"a": 1}}])
    return {
        "variantlake": vl,
        "variantlake.parquet": vl.parquet,
        "variantlake.duckdb": vl.duckdb,
        "Table": table,
        "Scan": table.scan(),
        "LocalQuery": table.sql("SELECT id FROM t"),
        "ChangeScan": table.changes(1)
        if "delta.enableChangeDataFeed" in table.properties
        else None,
        "MergeBuilder": table.merge_builder([{"id": 1}], "t.id = s.id"),
        "Expr": vl.col("id"),
        "LoadResult": table.append([{"id": 2}]),
    }


def arguments(call: Any) -> dict[str, Any]:
    """Something for each argument that a call must have."""
    return {
        name: None
        for name, each in inspect.signature(call).parameters.items()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    }


def test_unknown_keywords(owners: dict[str, Any], tmp_path: Path) -> None:
    wrong = {}
    for owner, held in owners.items():
        for name, call in functions(held).items():
            given = arguments(call)
            given |= {"path": tmp_path / "x.csv"} if name == "export" else {}
            try:
                call(**given, **{WORD: 1})
            except TypeError as error:
                # Python's own words name the function as it is defined.
                first = str(error).partition("()")[0]
                # `variant_remove` is another name of `variant_delete`.
                is_named = first.rpartition(".")[2] in (name, vl.variant_remove.__name__)
                is_public = first.rpartition(".")[0] in ("", owner, *bases(held))
                if not (WORD in str(error) and is_named and is_public):
                    wrong[f"{owner}.{name}"] = str(error)
            except InvalidValue as error:
                if f"there is no option '{WORD}'" not in str(error) and WORD in str(error):
                    wrong[f"{owner}.{name}"] = str(error)
            else:
                wrong[f"{owner}.{name}"] = "it is taken"
    assert wrong == {}


def bases(held: Any) -> list[str]:
    """Classes that may have the method of an object; results share a base."""
    return [each.__name__ for each in type(held).__mro__ if not each.__name__.startswith("_")]


def test_a_word_close_by_is_offered(owners: dict[str, Any], tmp_path: Path) -> None:
    for call in (owners["Table"].export, owners["Scan"].export, owners["LocalQuery"].export):
        with pytest.raises(InvalidValue, match="no option 'overwite'") as caught:
            call(tmp_path / "x.csv", overwite=True)
        assert "overwrite" in caught.value.hint
