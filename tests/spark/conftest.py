"""What holds for all tests with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def plans_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that puts other code in the place of ours meets no plan of before."""
    if "monkeypatch" not in request.fixturenames:
        yield
        return
    from variantlake.spark.rule.answers import Answers

    with mock.patch.object(Answers, "get", return_value=None):
        yield
