"""PyArrow in a command's own process: it imports pandas with its first array, for a quarter second.

No command has a use for pandas, and nobody else lives in the process.
"""

from __future__ import annotations

import sys
from typing import Any


class _NoPandas:
    """Finds no pandas, as if it were not installed."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def leave_pandas_out() -> None:
    """Let PyArrow find no pandas when it first wants to know; later imports of it succeed."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
