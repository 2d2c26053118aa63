"""Keep PyArrow from importing pandas with its first array, which takes a quarter of a second.

No command uses pandas, and no other program runs in the process.
"""

from __future__ import annotations

import sys
from typing import Any


class _NoPandas:
    """An import finder that hides pandas, as if it were not installed."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def leave_pandas_out() -> None:
    """Hide pandas while PyArrow looks for it the first time; later imports succeed."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
