"""The order of ops in a block, while ops are inserted."""

import random

import pytest
from xdsl.ir import Block

from tilework.ir.nesting import OpOrder
from tilework.ir.parser import parse_module


def block_of(n: int) -> Block:
    module = parse_module("\n".join(f"%x{k} = arith.constant {k} : i32" for k in range(n)))
    return module.regions[0].blocks[0]


def test_the_order_follows_insertions() -> None:
    """Clones in front of random ops, often of the same one, and at both ends of the block."""
    pick = random.Random(39)
    block, order = block_of(20), OpOrder()
    for _ in range(200):
        ops = list(block.ops)
        at = pick.choice([ops[0], ops[7], ops[-1], *ops])
        new = [at.clone() for _ in range(pick.randint(1, 3))]
        if pick.random() < 0.2:
            block.add_ops(new)
        else:
            block.insert_ops_before(new, at)
        ops = list(block.ops)
        for _ in range(10):
            i, j = pick.randrange(len(ops)), pick.randrange(len(ops))
            assert order.is_before(ops[i], ops[j]) == (i < j)


def test_a_full_gap_is_made_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpOrder, "GAP", 4)
    block, order = block_of(3), OpOrder()
    first, last = block.ops.first, block.ops.last
    assert first is not None and last is not None and order.is_before(first, last)
    for _ in range(20):
        middle = first.clone()
        block.insert_op_before(middle, last)
        assert order.is_before(first, middle) and order.is_before(middle, last)
    assert [order.number(op) for op in block.ops] == sorted({order.number(op) for op in block.ops})
