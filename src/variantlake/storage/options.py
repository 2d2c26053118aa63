"""How object stores are reached: credentials, endpoints, for all of a process or for one bucket.

Options have the names of environment variables (`AWS_ENDPOINT_URL`). For a bucket they are those of
a call's `storage_options`, then of Spark's settings for this bucket, of `set_storage_options`, of
the environment, of Spark's settings for all buckets, and of Amazon's default profile. Credentials
are of one of these, never mixed. Tasks on other machines get those of the process that starts them.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any

from variantlake.errors import InvalidValue, describe_type

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
"""Other names of one option, which give way to it."""

_CLIENT_NAMES = frozenset(
    {"ALLOW_HTTP", "ALLOW_INVALID_CERTIFICATES", "CONNECT_TIMEOUT", "TIMEOUT", "PROXY_URL"}
)
"""Options of the HTTP client, behind each store's prefix."""

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
"""Options that say nothing of who asks."""

SIGNS_ELSEWHERE = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
)
"""What a cloud sets in the environment of its pods and tasks, which obstore gets keys by."""

_AT = " of "
"""Between the name of an option and the bucket that it is for, where both are sent to a task."""

_given: dict[str, str] = {}
_of_spark: dict[str, str] = {}
_spark_buckets: dict[str, dict[str, str]] = {}
_of_buckets: dict[str, dict[str, str]] = {}
"""Options by the bucket, or container, that they were given for."""


def set_storage_options(options: Mapping[str, str]) -> None:
    """Reach object stores with these options from now on, in place of those given before.

    They have the names of environment variables (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
    `AWS_ALLOW_HTTP`, `GOOGLE_…`, `AZURE_…`), win over the environment, and go with every task that
    a Spark session runs for this process. An empty mapping takes them back.

    Raises InvalidValue for an option that no store has.
    """
    found = _checked(options)
    _given.clear()
    _given.update(found)


def reach_with(location: object, options: Mapping[str, str] | None) -> None:
    """Reach the bucket of a location with these options from now on, and no other bucket.

    Of a list of locations, those in object stores are meant. The options win over
    `set_storage_options` and the environment, and leave out all credentials of those if they have
    credentials themselves. None leaves all as it is, an empty mapping takes back.

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
        # What was given may hold a secret: it is not repeated.
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
    """The options of Spark's own file system for S3: of all buckets, and of some by their names.

    Those of a bucket win over what is set here for all; an empty one takes back what it is for.
    """
    _of_spark.clear()
    _of_spark.update(options)
    _spark_buckets.clear()
    _spark_buckets.update({f"s3://{name}": dict(each) for name, each in (buckets or {}).items()})


def storage_options(url: str = "") -> dict[str, str]:
    """The options as they are now, from every source, for a URL or for any.

    Raises StoreFailed for a profile that is not there.
    """
    return _options_of_bucket((url and _bucket_of(url)) or "")


def options_to_send() -> dict[str, str]:
    """All options of this process, for `take_options` in a task of it."""
    return _options_of_bucket("") | {
        f"{name}{_AT}{bucket}": value
        for bucket in {*_spark_buckets, *_of_buckets}
        for name, value in _options_of_bucket(bucket).items()
    }


def take_options(sent: Mapping[str, str]) -> None:
    """In a task: reach stores as the process that sent it."""
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
    # PySpark's own dictionary of the environment decodes each value: names first.
    told = _over({name: os.environ[name] for name in os.environ if _is_known(name)}, _given)
    is_told = any(name.startswith("AWS_") and name not in _SAYS_LITTLE for name in told)
    found = told if is_told else _of_spark | told
    for own in (_spark_buckets.get(bucket), _of_buckets.get(bucket)):
        found = _over(found, own or {})
    return _with_profile({name: value for name, value in found.items() if value})


def _over(rest: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Options with others that win over them: if those have credentials, then no other ones."""
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
    """Options of S3 with those of the profile: a named one, or the default if nobody else signs."""
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
    """The kind of store that a URL leads to: `s3`, `gs`, `az`, or another scheme as it stands."""
    scheme = url.partition(":")[0].lower()
    return _KINDS.get(scheme, scheme)


def client_arguments(url: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Those of the options that a URL needs, as obstore's `from_url` takes them."""
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
    """A pair of S3's keys by which alone requests are signed.

    obstore takes what it is not given from the environment: there a token may be of another pair.
    """
    key, secret = config.get("aws_access_key_id"), config.get("aws_secret_access_key")
    if not key or not secret or "AWS_SESSION_TOKEN" not in os.environ:
        return {}
    token = config.get("aws_session_token")
    found = {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}
    return {"credential_provider": lambda: found}


def retry_seconds(options: Mapping[str, str]) -> float:
    """How long a request that fails is tried again. Raises InvalidValue for what is not time."""
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
    """The bucket or container of a URL, whatever its scheme is called; None for a path."""
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
