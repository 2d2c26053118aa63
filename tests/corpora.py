"""Where the shared specifications, conformance files and data are, and what if they are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("VARIANTLAKE_SHARED", str(REPOSITORY.parent / "shared")))


def missing(what: str) -> NoReturn:
    """Skip the running test because `what` is absent; in CI that is a failure instead."""
    reason = f"{what} is not available here"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)


def require(path: Path) -> Path:
    """`path` if it exists, else skip (locally) or fail (CI)."""
    if not path.exists():
        missing(str(path))
    return path
