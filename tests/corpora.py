"""Where the test data is, and what a test does without a part that it needs.

`tests/data/README.md` says where each corpus comes from.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = REPOSITORY / "tests" / "data"
VARIANT_VALUES = DATA / "variant-values"
SHREDDED_VARIANT = DATA / "shredded-variant"
DELTA_TABLES = DATA / "delta-tables"
WEBHOOKS = DATA / "github_webhooks.ndjson.gz"
EARTHQUAKES = REPOSITORY / "examples" / "earthquakes.ndjson.gz"


def missing(what: str) -> NoReturn:
    """Skip the running test because `what` is absent; in CI that is a failure instead."""
    reason = f"{what} is not available here"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)
