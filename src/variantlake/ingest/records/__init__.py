"""Documents in other forms than JSON: CSV, Avro, MessagePack and BSON, as tapes of Variants.

In: a source. Out: its records in order, the bad ones with where they are. Each form is read by a
library that is well kept, and that only loads of this form need.
"""
