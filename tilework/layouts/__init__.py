"""The layouts of tensors: plain frozen values, no IR.

encodings.py    the layouts that have a name: blocked, mma, dot operand, slice, swizzled shared memory ...
amd.py          the same for AMD's matrix instructions
linear.py       what they all are: a linear map over bits from hardware locations to coordinates
to_linear.py    from the first to the second, for a shape
queries.py      orders, sizes, the elements of a thread
construct.py    encodings chosen by rule; infer.py: the encoding of a result
conversion.py   the cheapest way from one layout to another, by shuffles or through swizzled shared memory
banks.py        bank conflicts
sort_plan.py    the layouts in which threads sort
picture.py      as text, as a drawing (`tilework layout`), in notebooks
"""
