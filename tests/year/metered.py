"""The simulated store with a meter: requests by kind and bytes read, as a bill counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.bucket import Answer, Bucket, Client
from tests.simulation.world import World

DOLLARS = {"write": 5e-6, "read": 4e-7, "delete": 0.0}
"""For a request: S3 Standard's prices. A listing counts as a write, a delete is free."""

DOLLARS_OF_GB_MONTH = 0.023
DOLLARS_OF_CPU_HOUR = 0.0425

_CLASSES = {"put": "write", "create": "write", "list": "write", "delete": "delete"}


@dataclass(slots=True)
class Meter:
    """What was asked of the store since the meter was made."""

    requests: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0

    @property
    def count(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def dollars(self) -> float:
        """What the requests cost."""
        return sum(DOLLARS[kind] * count for kind, count in self.requests.items())


class MeteredBucket(Bucket):
    """A store whose calls are counted by `meter`; listings have pages of S3's size."""

    def __init__(self, world: World) -> None:
        super().__init__(world, page=1000)
        self.meter = Meter()

    def get(self, client: Client, path: str, *, options: Any = None) -> Answer:
        """See Bucket."""
        answer = super().get(client, path, options=options)
        self.meter.bytes_read += len(answer.data)
        return answer

    def get_range(self, client: Client, path: str, *, start: int, length: int) -> bytes:
        """See Bucket."""
        data = super().get_range(client, path, start=start, length=length)
        self.meter.bytes_read += len(data)
        return data

    def get_ranges(
        self, client: Client, path: str, *, starts: Sequence[int], lengths: Sequence[int]
    ) -> list[bytes]:
        """See Bucket."""
        pieces = super().get_ranges(client, path, starts=starts, lengths=lengths)
        self.meter.bytes_read += sum(map(len, pieces))
        return pieces

    def sizes(self, below: str) -> dict[str, int]:
        """The bytes of the objects below a path."""
        start = f"{below}/"
        return {path: len(blob.data) for path, blob in self.blobs.items() if path.startswith(start)}

    def expire(self, below: str, before: int) -> None:
        """Remove objects that are older, as a rule of the bucket does."""
        start = f"{below}/"
        for path in [p for p, b in self.blobs.items() if p.startswith(start)]:
            if self.blobs[path].modified < before:
                self.remove(path)

    def land(self, path: str, data: bytes) -> None:
        """Another system writes an object: nobody's request."""
        self._put(path, data, creates=False, work=None)

    def _begin(self, what: str, path: str) -> None:
        self.meter.requests[_CLASSES.get(what, "read")] += 1
        super()._begin(what, path)
