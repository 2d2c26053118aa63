"""Errors: what, where and what to try; they pickle."""

from __future__ import annotations

import builtins
import inspect
import pickle

import pytest

from variantlake import errors
from variantlake.errors import InvalidJson, MalformedVariant, VariantLakeError

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, VariantLakeError)
]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_derives_from_the_base_and_from_a_builtin(cls: type[VariantLakeError]) -> None:
    names = {
        base.__name__ for base in cls.__mro__ if getattr(builtins, base.__name__, None) is base
    }
    if cls is not VariantLakeError:
        assert names - {"Exception", "BaseException", "object"}


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_pickles_with_all_it_knows(cls: type[VariantLakeError]) -> None:
    error = cls(
        "no good", file="f.json", line=3, column=4, row=5, path="$['a']", offset=6, hint="try b"
    )
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is cls
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error)
    assert again.args == error.args == ("no good",)


def test_the_text_says_where_what_and_what_to_try() -> None:
    error = InvalidJson("expected ','", file="a.json", line=2, column=7, hint="is the line cut?")
    assert str(error) == "a.json, line 2, column 7: expected ','\nHint: is the line cut?"
    assert (
        str(MalformedVariant("bad", row=0, path="['a']", offset=0))
        == "row 0, at $['a'], byte 0: bad"
    )
    assert str(VariantLakeError("bad")) == "bad"
    assert VariantLakeError("bad").where() == ""


def test_positions_may_be_filled_in_later() -> None:
    error = MalformedVariant("bad", offset=3)
    error.file, error.row = "x.parquet", 7
    assert str(error) == "x.parquet, row 7, byte 3: bad"


def test_long_paths_are_shortened_in_the_middle() -> None:
    text = str(MalformedVariant("bad", path="$" + "[0]" * 1000))
    assert len(text) < 250
    assert text.startswith("at $[0][0]")
    assert "[0][0]: bad" in text


def test_what_is_said_can_be_written() -> None:
    for name in ("a\udcff", "a\ud800", "a\udcff\ud800"):
        error = InvalidJson("cut", file=name)
        assert error.file == name
        assert str(error).encode().startswith(b"a\\")
