"""Rare paths of a sample with many keys are forgotten, and the schema is the same without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from variantlake.ingest.encode.documents import sample_profile
from variantlake.ingest.sources.sources import expand
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.profile_limits import MANY_PATHS, NAMED_PATHS, ProfileLimits
from variantlake.kernels.variant.profiler import Profiler
from variantlake.shredding.inference.hints import parse_hints
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile


def rows(count: int) -> Iterator[dict[str, object]]:
    """Documents of which 40 ids are keys, each seen once, in an object and in an array."""
    for row in range(count):
        ids = {f"user{row * 40 + i:07d}": {"n": i, "name": f"n{i}"} for i in range(20)}
        more = [{f"item{row * 40 + i:07d}": i, "kind": "x", "at": [i]} for i in range(20)]
        event: dict[str, object] = {"id": row, "m": ids, "items": more}
        if row % 10 == 0:
            event["often"] = {"deep": {"value": row / 4}}
        if row % 200 == 0:
            event["rare"] = row
        yield event


def profile(limits: ProfileLimits | None, count: int) -> Profile:
    reader, profiler = JsonReader(), Profiler(limits)
    events = [json.dumps(event).encode() for event in rows(count)]
    for start in range(0, len(events), 200):
        text = b"\n".join(events[start : start + 200])
        padded = np.frombuffer(text + bytes(PADDING), np.uint8)
        lines = split_lines(padded[: len(text)])
        profiler.add(reader.read(padded, lines.starts, lines.ends))
    return profiler.result()


def paths(found: Profile) -> int:
    below = [*found.fields.values(), *([] if found.element is None else [found.element])]
    return 1 + sum(map(paths, below))


@pytest.mark.parametrize("hints", ["", "rare BIGINT, m.user0000013.n BIGINT", "rare, m.*"])
@pytest.mark.parametrize("arrays", [False, True])
def test_the_schema_is_that_of_all_paths(hints: str, arrays: bool) -> None:
    options = InferenceOptions(arrays=arrays, hints=parse_hints(hints) if hints else ())
    limits = ProfileLimits.of(options)
    kept, full = profile(limits, 1000), profile(None, 1000)
    assert paths(full) > 60_000
    assert paths(kept) < 2 * MANY_PATHS
    assert kept.rows == full.rows == 1000
    assert kept.fields["often"] == full.fields["often"]
    found = infer(kept, options).schema
    if "*" not in hints:  # of so many paths that a pattern names, any may be taken
        assert found == infer(full, options).schema
    assert ("rare" in str(found)) == bool(hints)
    assert "'value'" in str(found)


def test_few_paths_are_all_kept() -> None:
    options = InferenceOptions()
    full = profile(None, 40)
    assert NAMED_PATHS // 2 < paths(full) < NAMED_PATHS
    assert profile(ProfileLimits.of(options), 40) == full


def test_inference_over_many_keys_looks_at_few_of_them(tmp_path: Path) -> None:
    events = [{f"user{row * 50 + i:07d}": i for i in range(50)} for row in range(4000)]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, events)))
    options = InferenceOptions()
    found = sample_profile(expand(tmp_path / "a.json"), options)
    assert paths(found) < NAMED_PATHS
    assert len(infer(found, options).reasons) < NAMED_PATHS
