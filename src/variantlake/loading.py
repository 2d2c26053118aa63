"""Modules that load when they are first needed, many at once."""

from __future__ import annotations

import gc
import importlib

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from types import ModuleType


def load(*names: str) -> ModuleType:
    """Load modules, and give the last one.

    Python does not look for garbage meanwhile: loading leaves none, and looking for it takes an
    eighth of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return [importlib.import_module(name) for name in names][-1]
    finally:
        if collects:
            gc.enable()
