"""Credentials and endpoints of object stores, for the whole process or for one bucket.

Options have the names of environment variables (`AWS_ENDPOINT_URL`). The sources of a bucket's
options, by precedence: a call's `storage_options`, Spark's settings for this bucket,
`set_storage_options`, the environment, Spark's settings for all buckets, and Amazon's default
profile. Credentials come from one source, never from a mixture. Tasks on other machines get the
options of the process that starts them.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any

from variantlake.errors import InvalidValue, describe_type

RETRY_SECONDS = "VARIANTLAKE_RETRY_SECONDS"
"""The option that sets for how many seconds a failing request is retried."""
CLOUD_METADATA = "VARIANTLAKE_CLOUD_METADATA"
"""The option that allows requests for credentials to the cloud machine's metadata address."""

_DEFAULT_RETRY_SECONDS = 3.0
_MOST_RETRY_SECONDS = 3600.0

_KINDS = {"s3a": "s3", "azure": "az", "abfs": "az", "abfss": "az", "adl": "az"}
PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
"""The prefix of the options of each kind of store."""

_NAMES = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
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
"""Aliases of options. If both are set, the option wins over its alias."""

_CLIENT_NAMES = frozenset(
    {"ALLOW_HTTP", "ALLOW_INVALID_CERTIFICATES", "CONNECT_TIMEOUT", "TIMEOUT", "PROXY_URL"}
)
"""Options of the HTTP client, which follow each store's prefix."""

_SAYS_LITTLE = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP"})
"""Options that do not replace Spark's credentials and endpoint."""

_NO_SECRETS = frozenset(
    {
        *_SAYS_LITTLE,
        "AWS_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
        "AWS_UNSIGNED_PAYLOAD",
        "AWS_REQUEST_PAYER",
        "GOOGLE_BASE_URL",
        "AZURE_STORAGE_ENDPOINT",
        "AZURE_STORAGE_USE_EMULATOR",
    }
)
"""Options that hold no credentials."""

SIGNS_ELSEWHERE = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
)
"""Variables that a cloud sets in its pods and tasks, with which obstore obtains keys."""

_AT = " of "
"""Separates an option's name from its bucket in options sent to a task."""

_given: dict[str, str] = {}
_of_spark: dict[str, str] = {}
_spark_buckets: dict[str, dict[str, str]] = {}
_of_buckets: dict[str, dict[str, str]] = {}
"""The options of `reach_with`, by bucket or container."""


def set_storage_options(options: Mapping[str, str]) -> None:
    """Use these options for all object stores from now on, in place of those set before.

    They have the names of environment variables (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
    `AWS_ALLOW_HTTP`, `GOOGLE_…`, `AZURE_…`), take precedence over the environment, and are sent
    with every task that a Spark session runs for this process. An empty mapping removes them.

    Raises InvalidValue for an option that no store has.
    """
    found = _checked(options)
    _given.clear()
    _given.update(found)


def reach_with(location: object, options: Mapping[str, str] | None) -> None:
    """Use these options from now on for the bucket of a location, and for no other bucket.

    In a list of locations, those in object stores count. The options take precedence over
    `set_storage_options` and the environment, and if they hold credentials, they replace all
    credentials from there. None changes nothing, an empty mapping removes the bucket's options.

    Raises InvalidValue as `set_storage_options`, and if no location is in an object store.
    """
    if options is None:
        return
    found = _checked(options)
    is_list = isinstance(location, list | tuple | set | frozenset)
    every: list[object] = list(location) if is_list else [location]  # type: ignore[call-overload]  # is_list
    places = [os.fspath(each) for each in every if isinstance(each, str | os.PathLike)]
    buckets = [bucket for place in places if (bucket := _bucket_of(place)) is not None]
    if found and not buckets:
        what = "this is a path" if places else f"this is {describe_type(location)}"
        raise InvalidValue(
            f"storage options are for object stores, and {what}",
            file=places[0] if places else "",
            hint="leave out storage_options, or give a URL such as s3://bucket/table",
            cli_hint="",
        )
    for bucket in buckets:
        _of_buckets[bucket] = found
        if not found:
            del _of_buckets[bucket]


def _checked(options: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        # Do not quote the argument: it may hold a secret.
        raise InvalidValue(
            f"storage options are a mapping of names to texts, not {describe_type(options)}"
        )
    found = {name.upper(): str(value) for name, value in options.items()}
    if unknown := [name for name in found if not _is_known(name)]:
        raise InvalidValue(
            f"there is no storage option {unknown[0]!r}",
            hint="options have the names of environment variables: AWS_ENDPOINT_URL, "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ALLOW_HTTP, …",
        )
    return found


def fall_back_to(
    options: Mapping[str, str], buckets: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Set the options of Spark's file system for S3, for all buckets and for named `buckets`.

    A bucket's options win over `options`, and its empty option removes the general one.
    """
    _of_spark.clear()
    _of_spark.update(options)
    _spark_buckets.clear()
    _spark_buckets.update({f"s3://{name}": dict(each) for name, each in (buckets or {}).items()})


def storage_options(url: str = "") -> dict[str, str]:
    """Return the current options from all sources, for a URL or for object stores in general.

    Raises StoreFailed for an AWS profile that does not exist or gives no keys.
    """
    return _options_of_bucket((url and _bucket_of(url)) or "")


def options_to_send() -> dict[str, str]:
    """Return all options of this process, for `take_options` in its tasks."""
    return _options_of_bucket("") | {
        f"{name}{_AT}{bucket}": value
        for bucket in {*_spark_buckets, *_of_buckets}
        for name, value in _options_of_bucket(bucket).items()
    }


def take_options(sent: Mapping[str, str]) -> None:
    """Use, in a task, the options of the process that sent it."""
    set_storage_options({name: value for name, value in sent.items() if _AT not in name})
    buckets: dict[str, dict[str, str]] = {}
    for name, value in sent.items():
        option, at, bucket = name.partition(_AT)
        if at:
            buckets.setdefault(bucket, {})[option] = value
    _spark_buckets.clear()
    _of_buckets.clear()
    _of_buckets.update(buckets)


def _options_of_bucket(bucket: str) -> dict[str, str]:
    # `os.environ` decodes each value on access, so select by name first.
    told = _over({name: os.environ[name] for name in os.environ if _is_known(name)}, _given)
    is_told = any(name.startswith("AWS_") and name not in _SAYS_LITTLE for name in told)
    found = told if is_told else _of_spark | told
    for own in (_spark_buckets.get(bucket), _of_buckets.get(bucket)):
        found = _over(found, own or {})
    return _with_profile({name: value for name, value in found.items() if value})


def _over(rest: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Merge options; `own` wins over `rest`. Never mixes credentials for one kind of store."""
    names = {_SAME.get(name, name) for name in own}
    kinds = {name.partition("_")[0] for name in own if _is_secret(name)}
    kept = {
        name: value
        for name, value in rest.items()
        if _SAME.get(name, name) not in names
        and not (name.partition("_")[0] in kinds and _is_secret(name))
    }
    return kept | dict(own)


def _with_profile(options: dict[str, str]) -> dict[str, str]:
    """Add options of the AWS profile: the named one, or the default if no other source signs."""
    name = options.pop("AWS_PROFILE", "")
    if "AWS_ACCESS_KEY_ID" in options or "AWS_SKIP_SIGNATURE" in options:
        return options
    if name:
        from variantlake.storage.aws_profiles import profile_options

        return _over(profile_options(name), options)
    if any(os.environ.get(variable) for variable in SIGNS_ELSEWHERE):
        return options
    from variantlake.storage.aws_profiles import default_options

    return _over(default_options(), options)


def kind_of(url: str) -> str:
    """Return the kind of store that a URL leads to: `s3`, `gs`, `az`, or any other scheme as is."""
    scheme = url.partition(":")[0].lower()
    return _KINDS.get(scheme, scheme)


def client_arguments(url: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options for a URL as arguments of obstore's `from_url`."""
    prefix = PREFIXES.get(kind_of(url))
    config: dict[str, str] = {}
    client: dict[str, str] = {}
    for name, value in options.items():
        if prefix and name.startswith(prefix) and _SAME.get(name) not in options:
            rest = name.removeprefix(prefix)
            if rest in _CLIENT_NAMES:
                client[rest.lower()] = value
            else:
                config[name.lower()] = value
    return {
        **_only_these_keys(config),
        "config": config or None,
        "client_options": client or None,
        "retry_config": {"retry_timeout": dt.timedelta(seconds=retry_seconds(options))},
    }


def _only_these_keys(config: Mapping[str, str]) -> dict[str, Any]:
    """Make obstore sign S3 requests with exactly these keys.

    obstore takes missing options from the environment, whose session token may belong to other
    keys.
    """
    key, secret = config.get("aws_access_key_id"), config.get("aws_secret_access_key")
    if not key or not secret or "AWS_SESSION_TOKEN" not in os.environ:
        return {}
    token = config.get("aws_session_token")
    found = {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}
    return {"credential_provider": lambda: found}


def retry_seconds(options: Mapping[str, str]) -> float:
    """Return for how many seconds to retry a failing request.

    Raises InvalidValue unless the option is a number of seconds up to 3600.
    """
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


def _bucket_of(url: str) -> str | None:
    """Return a URL's bucket or container under its kind of store (`s3://b`); None for a path."""
    scheme, slashes, rest = url.partition("://")
    host = rest.partition("/")[0]
    kind = kind_of(scheme)
    return f"{kind}://{host}" if slashes and host and kind != "file" else None


def _is_secret(name: str) -> bool:
    rest = name.partition("_")[2]
    is_stores = name.startswith(tuple(PREFIXES.values()))
    return is_stores and name not in _NO_SECRETS and rest not in _CLIENT_NAMES


def _is_known(name: str) -> bool:
    prefix, _, rest = name.partition("_")
    return name in _NAMES or (prefix in ("AWS", "GOOGLE", "AZURE") and rest in _CLIENT_NAMES)
