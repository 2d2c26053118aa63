"""Start a local Spark for a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import variantlake as vl
from variantlake.cli.terminal.options import Engine
from variantlake.cli.terminal.output import print_note
from variantlake.errors import MissingDependency, UnsupportedFeature, VariantLakeError

T = TypeVar("T")


def load_by(engine: Engine, here: Callable[[], T], by_spark: Callable[[Any], T]) -> T:
    """Run as `run_by` does, for work that this process can always do: errors start no Spark."""
    return run_by(Engine.LOCAL if engine is Engine.AUTO else engine, here, by_spark)


def run_by(engine: Engine, here: Callable[[], T], by_spark: Callable[[Any], T]) -> T:
    """Run `here`, or `by_spark` in a local Spark if the engine is Spark.

    With the engine AUTO, Spark also runs if `here` raises UnsupportedFeature. Raises as both, and
    MissingDependency.
    """
    refusal = None
    if engine is not Engine.SPARK:
        try:
            return here()
        except UnsupportedFeature as error:
            if engine is Engine.LOCAL:
                raise
            refusal = error
    with spark_session(refusal) as session:
        return by_spark(session)


@contextmanager
def spark_session(refusal: VariantLakeError | None = None, *, instead: str = "") -> Iterator[Any]:
    """Start a local session for the block; a note tells `refusal`, the reason for it.

    `instead` is a hint on another way to run the work. If PySpark or Java is missing, this raises
    `refusal`, or without one MissingDependency.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(vl.spark.local_session())
        except MissingDependency as error:
            if refusal is None:
                error.cli_hint = f"{error.hint}; --engine local runs without it"
                raise
            if isinstance(refusal, UnsupportedFeature):
                others = f"{instead}; " if instead else ""
                refusal.cli_hint = f"{others}Spark may run it: {error.hint}"
            raise refusal from None
        if refusal is not None:
            print_note(f"Spark was started: {refusal.sentence()}")
        yield session
