"""The contract of a VARIANT column: a JSON Schema with a version.

A table keeps it in the property `variantlake.contract.<column>` (the column's physical name), as
JSON: `{"version": 2, "schema": {…}}`. A version without a schema means that the contract was
removed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import orjson

from variantlake.contracts.check import Breaches, find_breaches
from variantlake.contracts.rules import Rule, parse_rule
from variantlake.delta.protocol.known_properties import CONTRACT_PREFIX
from variantlake.errors import InvalidSchema, InvalidValue, MissingSource, VariantLakeError
from variantlake.kernels.tape.tape import Tape
from variantlake.shown import Shown

MAX_BYTES = 1 << 20
"""Our limit on the text of a contract: every snapshot of the table carries it."""


@dataclass(frozen=True, slots=True, repr=False)
class Contract(Shown):
    """A JSON Schema that the documents of a column must fulfil.

    It may have the keywords `type`, `enum`, `const`, `minimum`, `maximum`, `exclusiveMinimum`,
    `exclusiveMaximum`, `pattern` (RE2), `minLength`, `maxLength`, `properties`, `required`,
    `additionalProperties` (true or false), `items`, `minItems`, `maxItems` and `anyOf`. `version`
    counts the column's contracts in the table, from 1 on; 0 is a contract that no table keeps yet.
    """

    schema: Mapping[str, Any]
    version: int = 0
    rule: Rule = field(default_factory=Rule, repr=False, compare=False)

    @classmethod
    def of(cls, given: ContractLike) -> Self:
        """A contract from a schema: a mapping, its JSON text, or a file with it.

        Raises InvalidSchema for an invalid schema or one with keywords that are not checked,
        InvalidValue for another type, MissingSource for a file that cannot be read.

        Examples:
            >>> vl.Contract.of({"required": ["kind"]}).version
            0
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls._parsed(given)
        if not isinstance(given, str | os.PathLike):
            raise InvalidValue(
                f"contract is {given!r:.60}", hint="it takes a JSON Schema: a dict, or a file"
            )
        if isinstance(given, str) and given.lstrip().startswith("{"):
            return cls._of_text(given.encode("utf-8", "replace"), "the contract")
        file = os.fspath(given)
        try:
            return cls._of_text(Path(file).read_bytes(), file)
        except OSError as error:
            reason = error.strerror or str(error)
            raise MissingSource(f"the contract cannot be read: {reason}", file=file) from None

    @classmethod
    def _of_text(cls, text: bytes, name: str) -> Self:
        try:
            schema = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InvalidSchema(f"the contract is not JSON: {error}", file=name) from None
        if not isinstance(schema, dict):
            raise InvalidSchema("the contract is no JSON object", file=name)
        return cls._parsed(schema)

    @classmethod
    def _parsed(cls, schema: Mapping[str, Any], version: int = 0) -> Self:
        try:
            text = orjson.dumps(schema, option=orjson.OPT_NON_STR_KEYS, default=_plain)
        except TypeError as error:
            raise InvalidSchema(f"the contract is not JSON: {error}") from None
        if len(text) > MAX_BYTES:
            raise InvalidSchema(f"the contract has more than {MAX_BYTES:,} bytes of JSON")
        return cls(orjson.loads(text), version, parse_rule(orjson.loads(text)))

    def breaches(self, tape: Tape) -> Breaches | None:
        """The rows of a batch of documents that break the contract; None if none does."""
        return find_breaches(self.rule, tape)

    def text(self) -> str:
        """The value of the table property."""
        return orjson.dumps({"version": self.version, "schema": self.schema}).decode()

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The contract of a property; None if it was removed. Raises InvalidSchema."""
        version, schema = _stored(text)
        return None if schema is None else cls._parsed(schema, version)


ContractLike: TypeAlias = Contract | Mapping[str, Any] | str | os.PathLike[str]
"""What `Contract.of` takes."""


def contracts(properties: Mapping[str, str]) -> dict[str, Contract]:
    """The contracts of a table, by the physical names of its columns.

    Raises InvalidSchema for a contract with unknown keywords, as later releases may write.
    """
    by_column = {}
    for name, text in properties.items():
        if name.startswith(CONTRACT_PREFIX):
            try:
                contract = Contract.from_text(text)
            except VariantLakeError as error:
                error.say_first(f"the property {name}")
                raise
            if contract is not None:
                by_column[name.removeprefix(CONTRACT_PREFIX)] = contract
    return by_column


def contract_property(
    properties: Mapping[str, str], column: str, contract: Contract | None
) -> dict[str, str]:
    """The property that sets the contract of a column (physical name); empty if it is unchanged.

    A contract of None removes it. Raises InvalidSchema for a malformed property.
    """
    name = CONTRACT_PREFIX + column
    before = properties.get(name)
    version, schema = (0, None) if before is None else _stored(before)
    if (None if contract is None else contract.schema) == schema:
        return {}
    if contract is None:
        return {name: orjson.dumps({"version": version + 1}).decode()}
    return {name: replace(contract, version=version + 1).text()}


def contract_texts(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that hold contracts, unparsed."""
    return {name: text for name, text in properties.items() if name.startswith(CONTRACT_PREFIX)}


def _stored(text: str) -> tuple[int, Mapping[str, Any] | None]:
    try:
        stored = orjson.loads(text)
        return int(stored["version"]), stored.get("schema")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InvalidSchema("there is no contract in it") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r:.60} is no value of JSON")
