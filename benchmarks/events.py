"""Synthetic events in the shape of the JSONBench Bluesky stream, for benchmarks of any size."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
COLLECTIONS = {
    "app.bsky.feed.post": 15,
    "app.bsky.feed.like": 55,
    "app.bsky.feed.repost": 10,
    "app.bsky.graph.follow": 15,
    "app.bsky.graph.block": 3,
    "app.bsky.actor.profile": 2,
}
FIRST_TIME_US = 1_732_206_349_000_000


def events(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """`count` events in order of `time_us`; the same seed gives the same events."""
    rng = random.Random(seed)

    def text_id(length: int) -> str:
        return "".join(rng.choices(ALPHABET, k=length))

    users = ["did:plc:" + text_id(24) for _ in range(max(1000, count // 50))]
    words = [text_id(rng.randint(2, 9)) for _ in range(5000)]

    def subject() -> dict[str, str]:
        post = f"at://{rng.choice(users)}/app.bsky.feed.post/{text_id(13)}"
        return {"cid": "bafyrei" + text_id(52), "uri": post}

    def image() -> dict[str, Any]:
        return {
            "alt": " ".join(rng.choices(words, k=5)),
            "aspectRatio": {"height": rng.randint(300, 2000), "width": rng.randint(300, 2000)},
            "image": {
                "$type": "blob",
                "ref": {"$link": "bafkrei" + text_id(52)},
                "mimeType": "image/jpeg",
                "size": rng.randint(10_000, 10**6),
            },
        }

    def record(collection: str, time_us: int) -> dict[str, Any]:
        created = datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds")
        created = created.replace("+00:00", "Z")
        fields: dict[str, Any] = {"$type": collection, "createdAt": created}
        if collection.endswith("post"):
            fields["text"] = " ".join(rng.choices(words, k=rng.randint(3, 40)))
            fields["langs"] = [rng.choice(["en", "ja", "pt", "de"])]
            if rng.random() < 0.4:
                fields["reply"] = {"parent": subject(), "root": subject()}
            if rng.random() < 0.2:
                images = [image() for _ in range(rng.randint(1, 3))]
                fields["embed"] = {"$type": "app.bsky.embed.images", "images": images}
        elif collection.endswith(("like", "repost")):
            fields["subject"] = subject()
        elif collection.endswith(("follow", "block")):
            fields["subject"] = rng.choice(users)  # a string here, an object above
        else:
            fields["displayName"] = " ".join(rng.choices(words, k=2))
            fields["description"] = " ".join(rng.choices(words, k=12))
        return fields

    time_us = FIRST_TIME_US
    for _ in range(count):
        time_us += rng.randint(100, 20_000)
        event: dict[str, Any] = {"did": rng.choice(users), "time_us": time_us}
        chance = rng.random()
        if chance < 0.01:
            event["kind"] = "identity"
            event["identity"] = {
                "did": event["did"],
                "handle": text_id(8) + ".example",
                "seq": rng.randint(10**9, 10**10),
                "time": datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(),
            }
        elif chance < 0.015:
            event["kind"] = "account"
            event["account"] = {
                "active": rng.random() < 0.5,
                "did": event["did"],
                "seq": rng.randint(10**9, 10**10),
                "status": rng.choice(["deleted", "takendown", "deactivated"]),
            }
        else:
            collection = rng.choices(list(COLLECTIONS), list(COLLECTIONS.values()))[0]
            operation = rng.choices(["create", "delete", "update"], [90, 8, 2])[0]
            commit: dict[str, Any] = {
                "rev": text_id(13),
                "operation": operation,
                "collection": collection,
                "rkey": text_id(13),
            }
            if operation != "delete":
                commit["record"] = record(collection, time_us)
                commit["cid"] = "bafyrei" + text_id(52)
            event["kind"] = "commit"
            event["commit"] = commit
        yield event
