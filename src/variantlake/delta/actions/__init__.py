"""The actions of the protocol: add, remove, metaData, protocol, txn, domainMetadata and the rest.

In: lines of JSON or rows of a checkpoint, which nobody has checked. Out: frozen dataclasses.
Strict on every field that the protocol names, blind to the others.
"""
