"""The actions of the protocol: add, remove, metaData, protocol, txn, domainMetadata and the rest.

In: unchecked lines of JSON or rows of a checkpoint. Out: frozen dataclasses.
Parsing is strict on every field that the protocol names, and ignores the others.
"""
