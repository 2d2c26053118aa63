"""Import modules when they are first needed."""

from __future__ import annotations

import gc
import importlib

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from types import ModuleType


def load(*names: str) -> ModuleType:
    """Import modules, and return the last one.

    Pauses the garbage collector: imports leave no garbage, and collection takes an eighth of their
    time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [importlib.import_module(name) for name in names][-1]
    finally:
        if was_enabled:
            gc.enable()
