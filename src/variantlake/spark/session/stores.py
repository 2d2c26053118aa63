"""Options of object stores, shared by Spark's file systems, this process and Python tasks.

Spark's settings for S3 (`fs.s3a.access.key`, `fs.s3a.endpoint`, …) also serve for logs and kernels,
unless the environment or `set_storage_options` sets options. Tasks get the options of the process
that starts them. Hadoop's scheme for S3 is `s3a`, which replaces `s3` in paths unless Spark has a
file system for that (`fs.s3.impl`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from variantlake.spark.session.jvm import is_connect, session_of
from variantlake.storage.options import fall_back_to, options_to_send, take_options

_OPTIONS = {
    "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "fs.s3a.session.token": "AWS_SESSION_TOKEN",
    "fs.s3a.endpoint.region": "AWS_REGION",
}
_ENDPOINT, _TLS, _S3 = "fs.s3a.endpoint", "fs.s3a.connection.ssl.enabled", "fs.s3.impl"
_OF_ALL, _OF_BUCKETS = "fs.s3a.", "fs.s3a.bucket."


def follow_spark(spark: SparkSession) -> None:
    """Use Spark's settings for S3 for stores without other options.

    Settings of a bucket (`fs.s3a.bucket.NAME.access.key`) apply to that bucket, as in Hadoop.
    """
    setting = _settings(spark)
    encrypts = setting(_TLS)
    buckets = {
        bucket: _as_options({_TLS: encrypts, **own}.get)
        for bucket, own in _settings_of_buckets(spark).items()
    }
    fall_back_to(_as_options(setting), buckets)


def _as_options(setting: Callable[[str], str | None]) -> dict[str, str]:
    """Convert Hadoop's settings for S3 to options of stores."""
    found = {name: value for key, name in _OPTIONS.items() if (value := setting(key))}
    endpoint = setting(_ENDPOINT) or ""
    if endpoint.endswith("amazonaws.com"):
        # Overrides the endpoint for all buckets.
        found |= {"AWS_ENDPOINT": "", "AWS_ALLOW_HTTP": "false"}
    elif endpoint:
        if "://" not in endpoint:
            endpoint = f"{'http' if setting(_TLS) == 'false' else 'https'}://{endpoint}"
        found["AWS_ENDPOINT"] = endpoint
        found["AWS_ALLOW_HTTP"] = str(endpoint.startswith("http:")).lower()
    return found


def _settings_of_buckets(spark: Any) -> dict[str, dict[str, str | None]]:
    """Return the settings of each bucket, by the names that they have for all buckets."""
    if is_connect(spark):
        every = {name.removeprefix("spark.hadoop."): v for name, v in spark.conf.getAll.items()}
        rest = {
            n.removeprefix(_OF_BUCKETS): v for n, v in every.items() if n.startswith(_OF_BUCKETS)
        }
    else:
        conf = session_of(spark).sessionState().newHadoopConf()
        rest = dict(conf.getPropsWithPrefix(_OF_BUCKETS))
    found: dict[str, dict[str, str | None]] = {}
    for key, value in rest.items():
        # The name of a bucket may contain dots.
        for name in (*_OPTIONS, _ENDPOINT, _TLS):
            end = f".{name.removeprefix(_OF_ALL)}"
            if key.endswith(end):
                found.setdefault(key.removesuffix(end), {})[name] = value
    return found


def reads_s3(spark: SparkSession) -> bool:
    """Whether Spark itself has a file system for `s3:`."""
    return bool(_settings(spark)(_S3))


def hadoop_path(path: str) -> str:
    """Return the path of a file with the scheme of Hadoop's file system for S3."""
    return f"s3a://{path[5:]}" if path.startswith("s3://") else path


P = ParamSpec("P")
T = TypeVar("T")


def reaching_stores(run: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Wrap a function for a task in another process, which gets this one's storage options."""
    options = options_to_send()

    def reaching(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        take_options(options)
        yield from run(*args, **kwargs)

    return reaching


def _settings(spark: Any) -> Callable[[str], str | None]:
    """Return a lookup of Hadoop's settings by name; on Connect, only of those in Spark's conf."""
    if is_connect(spark):
        return lambda name: (
            spark.conf.get(f"spark.hadoop.{name}", None) or spark.conf.get(name, None)
        )
    found: Callable[[str], str | None] = session_of(spark).sessionState().newHadoopConf().get
    return found
