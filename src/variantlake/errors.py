"""The errors that Variantlake raises on purpose: what went wrong, where, and what to try."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TypedDict

from variantlake.shown import utf8_text


class Hints(TypedDict):
    """The next steps to suggest, in Python and on the command line."""

    hint: str
    cli_hint: str


class VariantLakeError(Exception):
    """Base of every error raised on purpose.

    `file` is a path or URI, `line` and `column` are 1-based positions in a text source, `row` is
    0-based within its file or batch, `path` is a path inside the document (`$['a'][0]`), `offset`
    counts bytes from the start of the value, file or buffer that is being read. `hint` says what to
    do next in Python. `cli_hint` says it for the command line: None if `hint` fits there too, empty
    if nothing can be done there.

    Callers fill in positions that the raising code does not know, so that successful work pays
    nothing for them. The error pickles, because Spark workers send it to the driver.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        row: int | None = None,
        path: str = "",
        offset: int | None = None,
        hint: str = "",
        cli_hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.row = row
        self.path = path
        self.offset = offset
        self.hint = hint
        self.cli_hint = cli_hint

    def where(self) -> str:
        """Return the known positions as one phrase, empty if none is known."""
        parts = [self.file] if self.file else []
        for label, number in (("line", self.line), ("column", self.column), ("row", self.row)):
            if number is not None:
                parts.append(f"{label} {number}")
        if self.path:
            path = self.path if self.path.startswith("$") else "$" + self.path
            parts.append(f"at {_shortened(path)}")
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        return ", ".join(parts)

    def sentence(self) -> str:
        """Return the message and the place, without the hint, as text that UTF-8 can encode."""
        where = self.where()
        return utf8_text(f"{where}: {self.message}" if where else self.message)

    def say_first(self, what: str) -> None:
        """Prepend the subject to the message, for callers that know more than the raiser."""
        self.message = f"{what}: {self.message}"
        self.args = (self.message,)

    def __str__(self) -> str:
        text = self.sentence()
        return f"{text}\nHint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))


@contextmanager
def in_file(file: str) -> Iterator[None]:
    """Name this file in errors of the block that name none."""
    try:
        yield
    except VariantLakeError as error:
        error.file = error.file or file
        raise


@contextmanager
def in_memory(what: str, hint: str, cli_hint: str | None = None) -> Iterator[None]:
    """Raise OutOfMemory with `what` and a hint if the block runs out of memory.

    `what` is a subject with its auxiliary verb, such as "the groups do".
    """
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:  # base of PyArrow's and NumPy's errors, too
        raise OutOfMemory(f"{what} not fit into memory", hint=hint, cli_hint=cli_hint) from error


def _shortened(path: str) -> str:
    """Return a path, or both ends of a long one: documents may nest 1,000 levels deep."""
    return path if len(path) <= 200 else f"{path[:100]} ... {path[-100:]}"


def _rebuild(cls: type[VariantLakeError], message: str, state: dict[str, object]) -> object:
    """Unpickle an error; pickle cannot pass the constructor's keywords."""
    error = cls(message)
    error.__dict__.update(state)
    return error


class MalformedVariant(VariantLakeError, ValueError):
    """Bytes that are not Variant `metadata` or `value` by the encoding specification."""


class UnknownVariantType(MalformedVariant):
    """A primitive type id that this version does not know; raised when the value is touched."""


class MalformedFile(VariantLakeError, ValueError):
    """A Parquet file, footer or shredded column that breaks its specification."""


class InvalidJson(VariantLakeError, ValueError):
    """Text that is not JSON, or JSON that a Variant cannot hold (duplicate keys, bad UTF-8)."""


class ContractBroken(VariantLakeError, ValueError):
    """A document that breaks the contract of its table or load."""


class LimitExceeded(VariantLakeError, ValueError):
    """Input beyond one of our limits (size, depth, number of keys)."""


class OutOfMemory(VariantLakeError, MemoryError):
    """What a call reads, groups, sorts or writes does not fit into this process's memory."""


class InvalidPath(VariantLakeError, ValueError):
    """A path expression that does not parse."""


class InvalidSchema(VariantLakeError, ValueError):
    """A shredding schema, DDL text or table schema that does not parse or cannot be used."""


class InvalidValue(VariantLakeError, ValueError):
    """A value, option or argument that cannot be used, or that no Variant type can hold."""


class PathTypeMismatch(VariantLakeError, TypeError):
    """The path of an edit goes through a value of another type."""


class DuplicateKey(VariantLakeError, ValueError):
    """The field to insert exists already."""


class MissingSource(VariantLakeError, FileNotFoundError):
    """A source or file that does not exist."""


class StoreFailed(VariantLakeError, OSError):
    """A disk or object store that refused or failed: permissions, network, no space."""


class NotADeltaTable(VariantLakeError, FileNotFoundError):
    """A location without a Delta log."""


class MalformedLog(VariantLakeError, ValueError):
    """A Delta log that breaks the protocol: truncated JSON, missing versions, wrong types."""


class UnsupportedFeature(VariantLakeError, NotImplementedError):
    """A protocol version or table feature that we do not support, refused by name."""


class AbsolutePathRefused(UnsupportedFeature):
    """A table names a file by an absolute path, which `set_absolute_paths` forbids."""


class CommitConflict(VariantLakeError, RuntimeError):
    """Another writer's commit contradicts ours; nothing of ours was committed."""


class TableReplaced(VariantLakeError, RuntimeError):
    """The table at a location is not the one that was opened there; nothing was done."""


class CommitLost(VariantLakeError, RuntimeError):
    """Another writer's log store overwrote a commit of ours (EXACTNESS rule 26)."""


class CommitUnknown(VariantLakeError, RuntimeError):
    """A store failed, and it is unknown whether the commit was made.

    `file` is the commit's file, which holds `txn_id` if the commit was made. `load_id` is the id of
    the load, empty for other changes: a load repeated with it loads nothing twice.
    """

    txn_id: str = ""
    load_id: str = ""


class LostCheckpoint(VariantLakeError, RuntimeError):
    """A stream's checkpoint does not match the progress in the table; nothing was written."""


class InvalidQuery(VariantLakeError, ValueError):
    """A query that does not parse, or that Spark refused."""


class NotCompiled(VariantLakeError, RuntimeError):
    """Kernels are not compiled for this processor or system, or are older than their sources."""


class MissingDependency(VariantLakeError, RuntimeError):
    """An optional part (PySpark, Java, a store) that is needed but not installed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name most similar to this one; empty if none is similar."""
    names = {each.lower(): each for each in known}
    import difflib  # only a wrong name needs it

    close = difflib.get_close_matches(name.lower(), names, 1, 0.75)
    return f"did you mean {names[close[0]]}?" if close else ""


def check_option_names(given: Collection[str], known: Collection[str]) -> None:
    """Raise InvalidValue for an unknown option; the hint has a similar name, or all names."""
    if unknown := set(given) - set(known):
        raise InvalidValue(
            f"there is no option {min(unknown)!r}",
            hint=did_you_mean(min(unknown), known) or f"options: {', '.join(sorted(known))}",
        )


def describe_type(value: object) -> str:
    """Describe a value's type for a message: `None`, `an int`, `a str`, `a value of bytes`."""
    if value is None:
        return "None"
    if isinstance(value, bytes):
        return "a value of bytes"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def wrong_option(name: str, value: object, wanted: str) -> InvalidValue:
    """Return the error for an option with a wrong value."""
    given = f"{value!r:.60}"
    if not isinstance(value, str | None):
        given += f", {describe_type(value)}"
    cli_wanted = wanted.removesuffix(", or a timedelta")  # a Python type
    return InvalidValue(
        f"{name} is {given}", hint=f"it takes {wanted}", cli_hint=f"it takes {cli_wanted}"
    )
