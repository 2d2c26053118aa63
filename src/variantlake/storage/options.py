"""How object stores are reached: credentials, endpoints. Given once, for all that a process opens.

Options have the names of environment variables (`AWS_ENDPOINT_URL`), which they come from unless
`set_storage_options` gives them. Tasks on other machines get those of the process that starts them.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any

from variantlake.errors import InvalidValue

RETRY_SECONDS = "VARIANTLAKE_RETRY_SECONDS"
"""How long a request that fails is tried again."""
CLOUD_METADATA = "VARIANTLAKE_CLOUD_METADATA"
"""Whether the machine's own cloud may be asked for credentials, at its metadata address."""

_DEFAULT_RETRY_SECONDS = 3.0
_MOST_RETRY_SECONDS = 3600.0

_KINDS = {"s3a": "s3", "azure": "az", "abfs": "az", "abfss": "az", "adl": "az"}
PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
"""What the options of a kind of store begin with."""

_NAMES = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
        "AWS_SKIP_SIGNATURE",
        "AWS_UNSIGNED_PAYLOAD",
        "AWS_REQUEST_PAYER",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_BASE_URL",
        "GOOGLE_SKIP_SIGNATURE",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_TENANT_ID",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_ENDPOINT",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_SKIP_SIGNATURE",
        RETRY_SECONDS,
        CLOUD_METADATA,
    }
)
_SAME = {"AWS_ENDPOINT_URL": "AWS_ENDPOINT", "AWS_DEFAULT_REGION": "AWS_REGION"}
"""Other names of one option, which give way to it."""

_CLIENT_NAMES = frozenset(
    {"ALLOW_HTTP", "ALLOW_INVALID_CERTIFICATES", "CONNECT_TIMEOUT", "TIMEOUT", "PROXY_URL"}
)
"""Options of the HTTP client, behind each store's prefix."""

_SAYS_LITTLE = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP"})
"""Options that do not replace Spark's credentials and endpoint."""

_given: dict[str, str] = {}
_of_spark: dict[str, str] = {}


def set_storage_options(options: Mapping[str, str]) -> None:
    """Reach object stores with these options from now on, in place of those given before.

    They have the names of environment variables (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
    `AWS_ALLOW_HTTP`, `GOOGLE_…`, `AZURE_…`), win over the environment, and go with every task that
    a Spark session runs for this process. An empty mapping takes them back.

    Raises InvalidValue for an option that no store has.
    """
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        # What was given may hold a secret: it is not repeated.
        raise InvalidValue(
            f"storage options are a mapping of names to texts, not a {type(options).__name__}"
        )
    found = {name.upper(): str(value) for name, value in options.items()}
    if unknown := [name for name in found if not _is_known(name)]:
        raise InvalidValue(
            f"there is no storage option {unknown[0]!r}",
            hint="options have the names of environment variables: AWS_ENDPOINT_URL, "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ALLOW_HTTP, …",
        )
    _given.clear()
    _given.update(found)


def fall_back_to(options: Mapping[str, str]) -> None:
    """The options of Spark's own file system for S3, unless options for S3 are set here."""
    _of_spark.clear()
    _of_spark.update(options)


def storage_options() -> dict[str, str]:
    """The options as they are now, from every source."""
    # PySpark's own dictionary of the environment decodes each value: names first.
    told = {name: os.environ[name] for name in os.environ if _is_known(name)}
    given = {_SAME.get(name, name) for name in _given}
    told = {n: v for n, v in told.items() if _SAME.get(n, n) not in given} | _given
    is_told = any(name.startswith("AWS_") and name not in _SAYS_LITTLE for name in told)
    return told if is_told else _of_spark | told


def kind_of(url: str) -> str:
    """The kind of store that a URL leads to: `s3`, `gs`, `az`, or another scheme as it stands."""
    scheme = url.partition(":")[0].lower()
    return _KINDS.get(scheme, scheme)


def client_arguments(url: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Those of the options that a URL needs, as obstore's `from_url` takes them."""
    prefix = PREFIXES.get(kind_of(url))
    config, client = {}, {}
    for name, value in options.items():
        if prefix and name.startswith(prefix) and _SAME.get(name) not in options:
            rest = name.removeprefix(prefix)
            if rest in _CLIENT_NAMES:
                client[rest.lower()] = value
            else:
                config[name.lower()] = value
    return {
        "config": config or None,
        "client_options": client or None,
        "retry_config": {"retry_timeout": dt.timedelta(seconds=retry_seconds(options))},
    }


def retry_seconds(options: Mapping[str, str]) -> float:
    """How long a request that fails is tried again. Raises InvalidValue for what is no time."""
    text = options.get(RETRY_SECONDS) or str(_DEFAULT_RETRY_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _MOST_RETRY_SECONDS:
        raise InvalidValue(
            f"{RETRY_SECONDS} is {text!r}", hint="a number of seconds, for example 3"
        )
    return seconds


def _is_known(name: str) -> bool:
    prefix, _, rest = name.partition("_")
    return name in _NAMES or (prefix in ("AWS", "GOOGLE", "AZURE") and rest in _CLIENT_NAMES)
