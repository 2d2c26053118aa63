"""Explain why a store cannot be reached, before a request or after it failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from variantlake.errors import StoreFailed
from variantlake.storage.options import (
    CLOUD_METADATA,
    PREFIXES,
    RETRY_SECONDS,
    SIGNS_ELSEWHERE,
    kind_of,
    retry_seconds,
)

_TRUE = ("1", "true", "on", "yes", "y")

# By scheme: options each of which suffices for credentials without a request to the metadata
# address of a cloud's machines.
_CREDENTIALS = {
    "s3": (
        "AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", *SIGNS_ELSEWHERE,
    ),
    "gs": (
        "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE",
    ),
    "az": (
        "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_USE_AZURE_CLI",
        "AZURE_STORAGE_USE_EMULATOR", "AZURE_SKIP_SIGNATURE", "AZURE_MSI_ENDPOINT",
        "IDENTITY_ENDPOINT",
    ),
}  # fmt: skip
_GCLOUD = Path(".config") / "gcloud" / "application_default_credentials.json"
_DISK_HINTS = {
    errno.EACCES: "check the owner and the mode of the file and of the folders above it",
    errno.EPERM: "check the owner and the mode of the file and of the folders above it",
    errno.ENOTDIR: "a part of this path is a file, not a folder: choose another place",
    errno.EROFS: "the disk is mounted for reading only: choose another place",
    errno.ENOSPC: "free some space on the disk, or choose another place",
    errno.EDQUOT: "free some space in your quota, or choose another place",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
_ENDPOINTS = {"s3": ("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), "az": ("AZURE_STORAGE_ENDPOINT",)}


def check_reachable(url: str, options: Mapping[str, str]) -> None:
    """Raise StoreFailed if it is clear without a request that a store cannot be reached.

    Without credentials, a client would ask the metadata address of a cloud's machines. On other
    machines, nothing or a foreign server answers there, so CLOUD_METADATA must allow it.
    """
    kind = kind_of(url)
    if url.lower().startswith("http://"):
        raise StoreFailed(
            "this location is not encrypted", file=url, hint="only https:// is read, not http://"
        )
    known = {**os.environ, **options}
    if kind in _CREDENTIALS and not _is_true(known.get(CLOUD_METADATA)):
        wanted = _CREDENTIALS[kind]
        by_login = kind == "gs" and (Path.home() / _GCLOUD).exists()
        if not by_login and not any(known.get(name) for name in wanted):
            profile = " or AWS_PROFILE" if kind == "s3" else ""
            raise StoreFailed(
                "there are no credentials for this store",
                file=url,
                hint=f"set {wanted[0]} and its companions{profile} in the environment, or "
                f"{PREFIXES[kind]}SKIP_SIGNATURE=true for public data; on a cloud machine with a"
                f" role of its own, {CLOUD_METADATA}=true",
            )
    for name in _ENDPOINTS.get(kind, ()):
        endpoint = known.get(name, "")
        allow = f"{PREFIXES[kind]}ALLOW_HTTP"
        if endpoint.startswith("http://") and not _is_true(known.get(allow)):
            if _is_true(known.get("AZURE_STORAGE_USE_EMULATOR")):
                continue
            raise StoreFailed(
                f"the endpoint {endpoint} is not encrypted",
                file=url,
                hint=f"{allow}=true in the environment allows http; else use https",
            )


def disk_failure(error: OSError | ValueError, file: str, what: str = "") -> StoreFailed:
    """Convert an operating system error to ours, with a hint. `what` describes the attempt."""
    number = error.errno if isinstance(error, OSError) else None
    reason = str(error) if number is None else os.strerror(number)
    return StoreFailed(f"{what}: {reason}" if what else reason, file=file, hint=disk_hint(error))


def disk_hint(error: BaseException) -> str:
    """Return a hint for an operating system error; empty if there is none."""
    return _DISK_HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def explained(error: Exception, file: str, options: Mapping[str, str]) -> StoreFailed:
    """Convert an error of a client to ours, with a hint."""
    message = str(error).partition("\n")[0]  # a dump of the client's state follows
    hint = ""
    if "error sending request" in message or "connect" in message.lower():
        at = next((options[n] for n in _ENDPOINTS.get(kind_of(file), ()) if options.get(n)), "")
        message = f"the store does not answer{f' at {at}' if at else ''}: {message}"
        hint = (
            "is the endpoint right, and can this machine reach it? "
            f"{RETRY_SECONDS} ({retry_seconds(options):g}) limits for how long it is tried again"
        )
    elif any(sign in message for sign in ("401", "403", "InvalidAccessKeyId", "AccessDenied")):
        hint = "are the credentials right, and may they do this in this place?"
    elif "301" in message or "PermanentRedirect" in message:
        hint = "is AWS_REGION the region of this bucket?"
    return StoreFailed(message, file=file, hint=hint)


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() in _TRUE
