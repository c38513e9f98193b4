"""Where the elements of a tensor are: plain frozen values, no IR.

families.py     what can be asked of every encoding, distributed or shared
encodings.py    the layouts that have a name: blocked, mma, dot operand, slice, swizzled shared memory ...
linear.py       what they all are: a map over bits from places to coordinates (packing.py, elimination.py)
to_linear.py    from the first to the second, for a shape
queries.py      orders, sizes, what a thread holds
construct.py    encodings chosen by rule; infer.py, reshape.py: the encoding of a result
conversion.py   the cheapest way from one layout to another; swizzle.py: through shared memory
banks.py        bank conflicts
picture.py      as text; svg.py: as a drawing (`tilework layout`)
shared.py       the layout that a host program names in a tensor descriptor
"""
