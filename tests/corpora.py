"""Where the test data is, and what a test does without a part that it needs.

Files that we made, and real data, are in `tests/data/` and `examples/`. Files of other projects lie
outside of the checkout: in the folder that `VARIANTLAKE_CORPORA` names, else in the folder `shared`
beside the checkout. `tests/data/README.md` says how to get them. A test that reads one says so:

    @pytest.mark.corpus(corpora.DELTA_TABLES)

Without that folder the test skips with a reason; in CI it fails.
"""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def place(name: str) -> Path:
    """The folder of a corpus, such as `conformance/variant-values`, whether or not it is there.

    Worktrees often lie in a folder of their own beside the clone, so `shared` may be further up.
    """
    chosen = os.environ.get("VARIANTLAKE_CORPORA")
    roots = [Path(chosen)] if chosen else [above / "shared" for above in REPOSITORY.parents]
    # VARIANTLAKE_CORPORA may also name the folder `conformance` or `suites` itself.
    tries = [each for root in roots for each in (root / name, root / Path(name).name)]
    return next((each for each in tries if each.is_dir()), tries[0])


DATA = REPOSITORY / "tests" / "data"
WEBHOOKS = DATA / "github_webhooks.ndjson.gz"
EARTHQUAKES = REPOSITORY / "examples" / "earthquakes.ndjson.gz"

VARIANT_VALUES = place("conformance/variant-values")
SHREDDED_VARIANT = place("conformance/parquet-shredded-variant")
DELTA_TABLES = place("conformance/delta-tables")


def missing(what: str) -> NoReturn:
    """Skip the running test because `what` is absent; in CI that is a failure instead."""
    reason = f"{what} is not available here"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)


def library(name: str) -> Any:
    """A library that a test needs; without it the test is skipped, and fails in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(name)


def require(*folders: Path) -> None:
    """Skip the running test, or fail it in CI, if a corpus that it reads is not there."""
    for folder in folders:
        if not folder.is_dir():
            missing(f"{folder} (tests/data/README.md says how to get it)")


def copy_writable(folder: Path, target: Path) -> Path:
    """Copy a corpus, which may be read-only, for a test that writes into it."""
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
