"""Read the profiles of Amazon's tools: `~/.aws/credentials` and `~/.aws/config`.

This module reads keys that are in a profile. If a profile signs in another way (a role, a login, a
program), it gets temporary keys from the command `aws`.
"""

from __future__ import annotations

import configparser
import datetime as dt
import json
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from variantlake.errors import StoreFailed

DEFAULT = "default"
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "AWS_CONFIG_FILE": ".aws/config",
}
Options = dict[str, str]

_OPTIONS = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region": "AWS_REGION",
    "endpoint_url": "AWS_ENDPOINT",
}
_SIGNS_IN_BY = (
    "role_arn", "sso_session", "sso_start_url", "credential_process", "login_session",
)  # fmt: skip
_RENEW = dt.timedelta(minutes=5)
_COMMAND_SECONDS = 60

_of_commands: dict[tuple[str, tuple[str, ...]], tuple[Options, dt.datetime]] = {}
"""Keys from `aws` and when to renew them, by profile and paths of the profile files."""


def profile_options(name: str) -> Options:
    """Return the keys, region and endpoint of a profile as options of a store.

    Raises StoreFailed if no file has the profile, or `aws` gives no keys for it.
    """
    profiles = _profiles()
    if name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise StoreFailed(
            f"there is no AWS profile {name!r}",
            hint=f"AWS_PROFILE names a profile of {' or '.join(map(str, _paths()))}: {known}",
        )
    options = _options_of(profiles[name])
    if "AWS_ACCESS_KEY_ID" in options and "AWS_SECRET_ACCESS_KEY" in options:
        return options
    return options | _keys_of_command(name)


def default_options() -> Options:
    """Return the options that the files hold for the profile `default`; never runs `aws`.

    If the profile signs in by other means than keys, only its region is returned: a profile that
    nobody named must not start a program.
    """
    profile = _profiles().get(DEFAULT, {})
    if any(profile.get(way) for way in _SIGNS_IN_BY):
        return {"AWS_REGION": profile["region"]} if profile.get("region") else {}
    return _options_of(profile)


def _options_of(profile: Options) -> Options:
    return {ours: profile[key] for key, ours in _OPTIONS.items() if profile.get(key)}


def _paths() -> list[Path]:
    return [
        Path(os.environ.get(variable) or Path.home() / path).expanduser()
        for variable, path in _FILES.items()
    ]


def _profiles() -> dict[str, Options]:
    """Return all profiles by name. The credentials file takes precedence over the config file."""
    credentials, config = map(_stamp, _paths())
    return _profiles_of(credentials, config)


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _profiles_of(
    credentials: tuple[str, int, int], config: tuple[str, int, int]
) -> dict[str, Options]:
    found: dict[str, Options] = {}
    for section, values in _sections(config).items():
        kind, _, name = section.partition(" ")
        if section == DEFAULT or kind == "profile":
            found[name.strip() or DEFAULT] = values
    for name, values in _sections(credentials).items():
        found[name] = found.get(name, {}) | values
    return found


def _sections(file: tuple[str, int, int]) -> dict[str, Options]:
    # ConfigParser copies keys of its default section into all others: name one that cannot exist.
    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(Path(file[0]).read_text(encoding="utf-8") if file[1] else "")
    except (configparser.Error, OSError, UnicodeDecodeError):
        # The parser's message quotes the line, which may hold a key.
        raise StoreFailed(
            "this file of AWS profiles does not read",
            file=file[0],
            hint="`aws configure list` says what is wrong",
        ) from None
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _keys_of_command(name: str) -> Options:
    """Return the keys of a profile from `aws`, cached until shortly before they expire."""
    key = name, tuple(map(str, _paths()))
    found = _of_commands.get(key)
    if found is None or found[1] <= dt.datetime.now(dt.UTC):
        found = _of_commands[key] = _ask_command(name)
    return found[0]


def _ask_command(name: str) -> tuple[Options, dt.datetime]:
    by_hand = "sign in (`aws sso login`), or write the profile's keys into the environment"
    command = shutil.which("aws")
    if command is None:
        raise StoreFailed(
            f"the AWS profile {name!r} has no keys, and the command `aws` that signs in is missing",
            hint=f"install the AWS command line, or {by_hand}",
        )
    wanted = [command, "configure", "export-credentials", "--profile", name, "--format", "process"]
    try:
        done = subprocess.run(  # noqa: S603 - the program that the user signs in with
            wanted, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=True
        )
        keys = json.loads(done.stdout)
        options = {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        }
        if keys.get("SessionToken"):
            options["AWS_SESSION_TOKEN"] = keys["SessionToken"]
        until = keys.get("Expiration")
        # Renew keys that never expire, too, because the profile may change.
        end = dt.datetime.fromisoformat(until) if until else dt.datetime.now(dt.UTC) + 12 * _RENEW
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        said = (getattr(error, "stderr", None) or "").strip().splitlines()
        # Its output may hold keys, so quote only the last line of its error output.
        reason = said[-1] if said else type(error).__name__
        raise StoreFailed(
            f"`aws configure export-credentials --profile {name}` fails: {reason}", hint=by_hand
        ) from None
    return options, end - _RENEW
