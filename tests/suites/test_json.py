"""JSON texts, JSON paths and JSON patches of other projects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

import variantlake as vl
from tests import corpora
from variantlake.errors import VariantLakeError
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.words import PADDING
from variantlake.paths import Path

TEXTS = corpora.place("suites/JSONTestSuite")
PATHS = corpora.place("suites/jsonpath-compliance")
PATCHES = corpora.place("suites/json-patch-tests")

DUPLICATE_KEYS = ("y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json")
"""Spark refuses them too."""


def _kernel_accepts(text: bytes) -> bool:
    """Whether compiled code takes the text, of one line or many, for a document."""
    padded = np.frombuffer(text + bytes(PADDING), np.uint8)
    tape = JsonReader().read(padded, np.array([0]), np.array([len(text)]))
    return bool(tape.status[0] == 0)


def _parsed(text: bytes) -> vl.Variant | None:
    try:
        return vl.parse_json(text)
    except VariantLakeError:
        return None


def _texts(folder: str) -> list[File]:
    return sorted((TEXTS / folder).glob("*.json"))


@pytest.mark.corpus(TEXTS)
def test_the_texts_are_there() -> None:
    counts = [sum(file.name[0] == kind for file in _texts("test_parsing")) for kind in "yni"]
    assert counts == [95, 188, 35]


@pytest.mark.corpus(TEXTS)
@pytest.mark.parametrize(
    "file", [*_texts("test_parsing"), *_texts("test_transform")], ids=lambda file: file.stem
)
def test_a_text_is_taken_or_refused_as_its_name_says(file: File) -> None:
    text = file.read_bytes()
    if file.name in DUPLICATE_KEYS:
        with pytest.raises(VariantLakeError, match="occurs twice"):
            vl.parse_json(text)
        return
    found = _parsed(text)
    assert (found is not None) == _kernel_accepts(text)
    assert found is None or not file.name.startswith("n_")
    if file.name.startswith("y_"):
        assert found is not None
        assert json.loads(found.to_json()) == json.loads(text)


_SINGLE = re.compile(
    r"""\$(\.[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*
    |\[\d+\]|\['([^'\\]|\\.)*'\]|\["([^"\\]|\\.)*"\])+""",
    re.VERBOSE,
)


def _path_cases() -> list[dict[str, Any]]:
    file = PATHS / "cts.json"
    tests: list[dict[str, Any]] = json.loads(file.read_text())["tests"] if file.is_file() else []
    return [each for each in tests if each.get("result_paths")]


@pytest.mark.corpus(PATHS)
def test_normalized_paths_lead_to_their_nodes() -> None:
    cases = _path_cases()
    assert len(cases) > 300
    for case in cases:
        document = vl.Variant.of(case["document"])
        for text, value in zip(case["result_paths"], case["result"], strict=True):
            path = Path.parse(text)
            assert path.normalized() == text, case["name"]
            if path.steps:
                found = document.get(path)
                assert found is not None, case["name"]
                assert found.to_python() == vl.Variant.of(value).to_python(), case["name"]


@pytest.mark.corpus(PATHS)
def test_selectors_of_names_and_indexes_are_those_paths() -> None:
    """RFC 9535, "Name Selector" and "Index Selector"; of the latter those from the start."""
    cases = [case for case in _path_cases() if _SINGLE.fullmatch(case["selector"])]
    assert len(cases) >= 45
    for case in cases:
        path = Path.parse(case["selector"])
        assert [path.normalized()] == case["result_paths"], case["name"]


def _steps(pointer: str, document: Any) -> Iterator[str | int]:
    """A JSON pointer as steps of a path; an index where the document has an array."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            at = len(document) if name == "-" else int(name)
            yield at
            document = document[at] if at < len(document) else None
        else:
            yield name
            document = document.get(name) if isinstance(document, dict) else None


def _changed(document: Any, operation: dict[str, Any]) -> Any:
    path = Path.of(*_steps(operation["path"], document))
    variant, value = vl.Variant.of(document), operation.get("value")
    is_index = isinstance(path.steps[-1], int)
    match operation["op"]:
        case "add" if is_index:
            variant = vl.variant_insert(variant, path, value)
        case "add":
            variant = vl.variant_set(variant, path, value)
        case "replace":
            variant = vl.variant_set(variant, path, value, create_if_missing=False)
        case "remove":
            variant = vl.variant_delete(variant, path)
    return variant.to_python()


def _patches() -> list[dict[str, Any]]:
    """Those of the operations that we have, below the root."""
    cases = [
        case
        for name in ("tests.json", "spec_tests.json")
        if (PATCHES / name).is_file()
        for case in json.loads((PATCHES / name).read_text())
        if "expected" in case and not case.get("disabled")
    ]
    return [
        case
        for case in cases
        if all(
            each["op"] in ("add", "replace", "remove") and each["path"] for each in case["patch"]
        )
    ]


@pytest.mark.corpus(PATCHES)
def test_patches_change_variants_as_they_say() -> None:
    cases = _patches()
    assert len(cases) > 40
    for case in cases:
        document = case["doc"]
        for operation in case["patch"]:
            document = _changed(document, operation)
        assert document == case["expected"], case
