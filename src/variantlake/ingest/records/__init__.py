"""Read documents in CSV, Avro, MessagePack and BSON into tapes of Variants.

In: a source. Out: its records in order; bad ones with their place. A well-maintained library reads
each format, and only loads of that format need it.
"""
