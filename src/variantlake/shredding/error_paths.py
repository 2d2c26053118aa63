"""The path of an error, put together while it unwinds."""

from __future__ import annotations

from variantlake.errors import VariantLakeError
from variantlake.paths import Path


class below:  # noqa: N801  # reads as a statement: with below("name")
    """Puts a step in front of the path of an error that passes."""

    __slots__ = ("_step",)

    def __init__(self, step: str | int) -> None:
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, VariantLakeError):
            step = Path.of(self._step).normalized().removeprefix("$")
            error.path = step + error.path.removeprefix("$")
