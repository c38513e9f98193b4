"""What compilers before 3.0 wrote (Triton 2.x), read as what is written today; nothing here is ever printed.

spellings.py            other names of ops, types and attributes
encoding_fields.py      other names and fields of encodings
tt_ops.py               `tt` ops that had another name or form
shared_tensors.py       shared memory as tensors, from before there were memory descriptors: translated when the text ends
shared_tensor_ops.py    the ops of that time; shared_tensor_rules.py: what each is today
"""
