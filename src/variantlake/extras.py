"""Load libraries that only an extra of the package installs."""

from __future__ import annotations

import importlib
from typing import Any

from variantlake.errors import MissingDependency


def extra_library(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional library, which does `what`. Raises MissingDependency."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingDependency(
            f"{module.partition('.')[0]} is not installed, which {what}",
            hint=f"pip install 'variantlake[{extra}]'",
        ) from None
