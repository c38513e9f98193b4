"""Text of compilers before 3.0 (Triton 2.x), read as today's IR; nothing here is ever printed.

    spellings.py            other names of ops, types and attributes
    ops.py                  ops that had another name or form
    shared_tensors.py       shared memory as tensors, from before memory descriptors: translated at the end of the text

Older fields of encodings are in `ir/encodings.py`.
"""
