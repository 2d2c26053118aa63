"""What a commit says of its load beside the rows: how far it has come, in the table's own log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from variantlake.delta.actions.log_lines import DomainMetadata, Transaction
from variantlake.delta.log.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Actions of one commit that stand for progress, decided on what the table said before.

    `is_stale` tells whether a newer version says something else, so that the rows may be in the
    table already: then nothing is committed. `version_in` gives the version that brought these very
    rows, where one did. `provenance` are fields of `commitInfo` in the place
    of a load's own.
    """

    transactions: tuple[Transaction, ...]
    domains: tuple[DomainMetadata, ...]
    is_stale: Callable[[Snapshot], bool]
    version_in: Callable[[Snapshot], int | None] = lambda _: None
    provenance: Mapping[str, Any] = field(default_factory=dict)
