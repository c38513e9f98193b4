"""Statements that no kernel should contain, or only just may: one per line, ``\\n`` where a new line begins.

`p` is a pointer to fp32, `n` an int32, BLOCK the constexpr 64. `test_odd_kernels.py` compiles each of them.
"""

STATEMENTS = r"""
match n:\n    case 1: pass\n    case _: pass
with open("x") as f:\n    pass
with tl.arange(0, 4):\n    pass
x = [i for i in range(4)]
x = [i for i in p]
x = [a + b for a in (1, 2) for b in (3, 4)]
x = {i for i in (1, 2)}
x = {i: i for i in (1, 2)}
x = sum(i for i in (1, 2))
x = {1, 2}
x = f"{n}"
x: tl.constexpr = f"{BLOCK:>10}"\ntl.static_assert(x == "        64")
x: tl.constexpr = f"{BLOCK:{BLOCK}}"
global G\nG = 3
nonlocal_ = 3\ndel nonlocal_
del n
yield n
x = yield n
x = yield from (1, 2)
x = 1 < n < 3
x = BLOCK < 3 < BLOCK
class A:\n    pass
for i in range(4):\n    break
for i in range(4):\n    continue
while n > 0:\n    break
for i in range(3):\n    pass\nelse:\n    pass
while n > 3:\n    n -= 1\nelse:\n    pass
for i in tl.static_range(3):\n    break
for i in range(4):\n    return
while n > 0:\n    return
for i in (1, 2, 3):\n    pass
for i in p:\n    pass
for i in "abc":\n    pass
for i, j in range(3):\n    pass
for i in range():\n    pass
for i in range(1, 2, 3, 4):\n    pass
for i in range(1.5):\n    pass
for i in range(tl.arange(0, 4)):\n    pass
for i in range(0, 4, 0):\n    pass
for i in tl.static_range(n):\n    pass
for i in tl.static_range(0, 4, 0):\n    pass
for i in tl.range(n, foo=3):\n    pass
for i in range(start=3):\n    pass
for i in range:\n    pass
for i in enumerate((1, 2)):\n    pass
for i in zip((1, 2), (3, 4)):\n    pass
d = tl.arange(0, 4)\nx = {d: 1}
x = n is 3
x = n is n
x = n is None
x = n in (1, 2)
x = 1 in (1, 2)
x = "a" in "abc"
x = tl.arange(0, 8)[::2]
x = tl.arange(0, 8)[1:3]
x = tl.arange(0, 8)[0]
x = tl.arange(0, 8)[...]
x = tl.arange(0, 8)[tl.arange(0, 8)]
x = tl.arange(0, 8)[:, None, :, 3]
x = tl.arange(0, 8)[None:3]
x = n[0]
x = n[:]
x = None + 1
x = None + n
x = n + None
x = -None
x = None < n
x = "a" + "b"
x: tl.constexpr = "a" + "b"
x = "a" + n
x = n + "a"
x = "a" * n
x = "%d" % n
x = p + "a"
x = 10**400 + n
x = n + 10**400
x = 2**64
x = 1e400
x = 1 << 100000
x = 1j * n
x = b"abc"
x = n + b"abc"
x = ... + n
x = tl.arange(0, -8)
x = tl.arange(8, 0)
x = tl.arange(0, 0)
x = tl.arange(0, 7)
x = tl.arange(0, n)
x = tl.arange(n, n + 8)
x = tl.arange(0, 8.0)
x = tl.arange(0, None)
x = tl.arange("0", 8)
x = tl.arange(0)
x = tl.arange()
x = tl.arange(0, 8, 2)
x = tl.arange(0, 2**40)
x = tl.arange(-8, 0)
x = tl.zeros((-4,), tl.float32)
x = tl.zeros((0,), tl.float32)
x = tl.zeros((3,), tl.float32)
x = tl.zeros((n,), tl.float32)
x = tl.zeros(n, tl.float32)
x = tl.zeros((4.0,), tl.float32)
x = tl.zeros("4", tl.float32)
x = tl.zeros(None, tl.float32)
x = tl.zeros((4,), None)
x = tl.zeros((4,), "fp32")
x = tl.zeros((4,), n)
x = tl.zeros((4,), 3)
x = tl.zeros((4,), p)
x = tl.zeros((4,), tl.void)
x = tl.zeros((1024, 2048), tl.float32)
x = tl.full((4,), None, tl.float32)
x = tl.full((4,), "a", tl.float32)
x = tl.full((4,), tl.arange(0, 4), tl.float32)
x = tl.full((4,), p, tl.float32)
x = tl.full((4,), 1.5, tl.int32)
x = tl.full((4,), 1 << 70, tl.int32)
x = tl.full((4,), 1, p.dtype)
x = tl.zeros_like(3)
x = tl.zeros_like(None)
x = tl.load(n)
x = tl.load(3)
x = tl.load(None)
x = tl.load("p")
x = tl.load()
x = tl.load(p, n)
x = tl.load(p, mask=n)
x = tl.load(p, mask="a")
x = tl.load(p, other=3.0)
x = tl.load(p, mask=n > 0, other="a")
x = tl.load(p, mask=n > 0, other=p)
x = tl.load(p, boundary_check=(0,))
x = tl.load(p, padding_option="zero")
x = tl.load(p, cache_modifier=".xx")
x = tl.load(p, cache_modifier=3)
x = tl.load(p, eviction_policy="never")
x = tl.load(p, eviction_policy=n)
x = tl.load(p, volatile=n)
x = tl.load(p, bogus=3)
x = tl.load(p + tl.arange(0, 8), mask=tl.arange(0, 4) < 3)
tl.store(p)
tl.store(p, None)
tl.store(p, "a")
tl.store(p, p)
tl.store(p, (1, 2))
tl.store(p, tl.arange(0, 8))
tl.store(p, 1.0, mask=tl.arange(0, 8) < 3)
tl.store(p + tl.arange(0, 8), tl.zeros((4,), tl.float32))
tl.store(p + tl.arange(0, 8), 1.0, mask=n)
tl.store(3, 4)
tl.store(n, 4)
x = tl.store(p, 1.0)\ny = x + 1
tl.store(p, 1.0, cache_modifier=".ca")
x = tl.program_id()
x = tl.program_id(3)
x = tl.program_id(-1)
x = tl.program_id(n)
x = tl.program_id("x")
x = tl.program_id(None)
x = tl.program_id(0.5)
x = tl.num_programs(7)
x = tl.dot(p, p)
x = tl.dot(n, n)
x = tl.dot(3, 4)
x = tl.dot(tl.arange(0, 16), tl.arange(0, 16))
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((32, 16), tl.float32))
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float16))
x = tl.dot(tl.zeros((16, 16), tl.int32), tl.zeros((16, 16), tl.int32))
x = tl.dot(tl.zeros((16, 4), tl.float32), tl.zeros((4, 16), tl.float32))
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), acc=3)
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), acc=tl.zeros((8, 8), tl.float32))
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="fast")
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision=3)
x = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="ieee", allow_tf32=True)
x = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), out_dtype=tl.bfloat16)
x = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), out_dtype=3)
x = tl.sum(n)
x = tl.sum(3)
x = tl.sum(tl.arange(0, 8), axis=3)
x = tl.sum(tl.arange(0, 8), axis=-2)
x = tl.sum(tl.arange(0, 8), axis=n)
x = tl.sum(tl.arange(0, 8), axis="x")
x = tl.sum(tl.arange(0, 8), axis=(0,))
x = tl.sum(tl.arange(0, 8), dtype="int32")
x = tl.sum(p + tl.arange(0, 8))
x = tl.max(tl.arange(0, 8), axis=5)
x = tl.max(tl.arange(0, 8), return_indices=True)
x = tl.argmax(tl.arange(0, 8))
x = tl.xor_sum(tl.zeros((8,), tl.float32))
x = tl.reduce(tl.arange(0, 8), 0, 3)
x = tl.reduce(tl.arange(0, 8), 0, None)
x = tl.reduce(tl.arange(0, 8), 0, math.fsum)
x = tl.reduce(tl.arange(0, 8), 0, lambda a, b: a + b)
x = tl.reduce(tl.arange(0, 8), 0, one_arg)
x = tl.reduce(tl.arange(0, 8), 0, wrong_type)
x = tl.reduce(tl.arange(0, 8), 0, returns_nothing)
x = tl.reduce((tl.arange(0, 8), tl.arange(0, 16)), 0, pair)
x = tl.associative_scan(tl.arange(0, 8), 3, one_arg)
x = tl.cumsum(n)
x = tl.cumsum(tl.arange(0, 8), axis=4)
x = tl.sort(n)
x = tl.sort(tl.zeros((4, 4), tl.float32), dim=0)
x = tl.topk(tl.arange(0, 8), 3)
x = tl.topk(tl.arange(0, 8), 16)
x = tl.topk(tl.arange(0, 8), n)
x = tl.reshape(tl.arange(0, 8), (3, 3))
x = tl.reshape(tl.arange(0, 8), (-1, 2))
x = tl.reshape(tl.arange(0, 8), n)
x = tl.reshape(n, (2,))
x = tl.reshape(tl.arange(0, 8), "ab")
x = tl.broadcast_to(tl.arange(0, 8), (4, 8))
x = tl.broadcast_to(tl.arange(0, 8), (16,))
x = tl.expand_dims(tl.arange(0, 8), 5)
x = tl.expand_dims(tl.arange(0, 8), (0, 0))
x = tl.expand_dims(tl.arange(0, 8), n)
x = tl.permute(tl.zeros((4, 8), tl.float32), (0, 0))
x = tl.permute(tl.zeros((4, 8), tl.float32), (0,))
x = tl.permute(tl.zeros((4, 8), tl.float32), (0, -1))
x = tl.permute(tl.zeros((4, 8), tl.float32), n)
x = tl.trans(tl.arange(0, 8))
x = tl.trans(n)
x = n.T
x = tl.arange(0, 8).T
x = tl.cat(tl.arange(0, 8), tl.arange(0, 8))
x = tl.cat(tl.arange(0, 8), tl.zeros((8,), tl.float32), can_reorder=True)
x = tl.cat(n, n, can_reorder=True)
x = tl.join(tl.arange(0, 8), tl.zeros((8,), tl.float32))
x = tl.join(tl.arange(0, 8), tl.arange(0, 4))
x = tl.join(3, 4)
x = tl.split(tl.arange(0, 8))
x = tl.split(n)
a, b, c = tl.split(tl.arange(0, 2))
x = tl.interleave(3, n)
x = tl.flip(n)
x = tl.flip(tl.arange(0, 8), 4)
x = tl.gather(tl.arange(0, 8), n, 0)
x = tl.gather(tl.arange(0, 8), tl.zeros((8,), tl.float32), 0)
x = tl.gather(tl.arange(0, 8), tl.arange(0, 8), 3)
x = tl.histogram(tl.zeros((8,), tl.float32), 4)
x = tl.histogram(tl.arange(0, 8), 3)
x = tl.histogram(tl.arange(0, 8), n)
x = tl.histogram(n, 4)
x = tl.histogram(tl.arange(0, 8), 4, mask=tl.arange(0, 8))
tl.atomic_add(n, 1)
tl.atomic_add(p, 1, sem="weird")
tl.atomic_add(p, 1, scope="galaxy")
tl.atomic_add(p, 1, mask=3)
tl.atomic_add(p, "a")
tl.atomic_and(p, 1.0, sem=n)
tl.atomic_cas(p, 1, 2)
tl.atomic_cas(p, 1.0)
tl.atomic_xchg(p)
tl.atomic_max(p.to(tl.pointer_type(tl.int8)), 1)
x = tl.exp(n)
x = tl.exp("a")
x = tl.exp(None)
x = tl.exp()
x = tl.exp(1, 2)
x = tl.sqrt_rn(n)
x = tl.abs(p)
x = tl.fma(1, 2, 3)
x = tl.fma(n, n)
x = tl.minimum(n)
x = tl.minimum(n, "a")
x = tl.minimum(n, None)
x = tl.minimum(n, p)
x = tl.minimum(n, n, propagate_nan=3)
x = tl.clamp(n, 0, 1)
x = tl.clamp(n)
x = tl.where(n, 1, 2, 3)
x = tl.where(n > 0, p, 0)
x = tl.where(n > 0, "a", "b")
x = tl.where(None, 1, 2)
x = tl.cdiv(n, 0.5)
x = tl.cdiv(3, 0)
x = tl.multiple_of(n, 3.5)
x = tl.multiple_of(n, n)
x = tl.multiple_of(n, (8, 8))
x = tl.max_contiguous(tl.arange(0, 8), (8, 8))
x = tl.max_contiguous(n, 8)
x = tl.max_contiguous(tl.arange(0, 8), "a")
tl.assume(3)
tl.assume("a")
tl.assume(tl.arange(0, 8) > 3)
tl.static_assert(n > 3)
tl.static_assert()
tl.static_assert(True, "a", "b")
tl.static_assert(BLOCK == 3, "text")
tl.static_assert("a")
tl.static_assert(BLOCK == 3, n)
tl.device_print(n)
tl.device_print("\u00e9", n)
tl.device_print("x", "y")
tl.device_print()
print(n)
print("x", p, hex=True)
tl.device_assert("a")
tl.device_assert(n, n)
assert n, n
tl.inline_asm_elementwise("", "=r", [n], tl.int32, True, 0)
tl.inline_asm_elementwise("", "=r", n, tl.int32, True, 1)
tl.inline_asm_elementwise(n, "=r", [n], tl.int32, True, 1)
tl.inline_asm_elementwise("", "=r", [n], n, True, 1)
x = tl.map_elementwise(one_arg, n)
x = tl.map_elementwise(3, tl.arange(0, 8))
x = tl.map_elementwise(one_arg, tl.arange(0, 8), pack=3)
x = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0, 1))
x = tl.make_block_ptr(p, (8, 8), (1,), (0,), (8,), (0,))
x = tl.make_block_ptr(n, (8,), (1,), (0,), (8,), (0,))
x = tl.make_block_ptr(p, (8,), (1,), (0,), (7,), (0,))
x = tl.make_block_ptr(p, (8,), (1,), (0,), (n,), (0,))
x = tl.make_block_ptr(p, "a", (1,), (0,), (8,), (0,))
x = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (3,))
x = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)) + 1
tl.advance(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), (1,))
x = tl.advance(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), (1, 2))
x = tl.advance(p, (1,))
x = tl.advance(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), "a")
x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), mask=n > 0)
x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(1,))
x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0, 0))
x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=n)
x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0,), padding_option="ones")
tl.store(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), tl.arange(0, 8))
d = tl.make_tensor_descriptor(p, (8,), (1,), (2,))
d = tl.make_tensor_descriptor(p, (8,), (2,), (8,))
d = tl.make_tensor_descriptor(p, (8,), (n,), (8,))
d = tl.make_tensor_descriptor(p, (8, 8), (1,), (8,))
d = tl.make_tensor_descriptor(n, (8,), (1,), (8,))
d = tl.make_tensor_descriptor(p, (), (), ())
d = tl.make_tensor_descriptor(p, (8,), (1,), (n,))
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,), padding_option="x")
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nx = d.load((1, 2))
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nx = d.load("a")
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nd.store((0,), tl.arange(0, 4))
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nd.atomic_xor((0,), tl.zeros((8,), tl.float32))
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nd.gather(tl.arange(0, 8), 0)
d = tl.make_tensor_descriptor(p, (8,), (1,), (8,))\nx = d.nothing
x = n.to("float")
x = n.to(3)
x = n.to(None)
x = n.to()
x = n.to(n)
x = n.to(tl.float32, fp_downcast_rounding="up")
x = n.to(tl.float32, fp_downcast_rounding=3)
x = n.to(tl.int64, bitcast=True)
x = tl.cast("a", tl.int32)
x = n.nothing
x = n.nothing()
x = tl.nothing
x = tl.nothing(3)
x = math.sin(n)
x = math.nothing(3)
x = math.sqrt(-1)
x = math.sin("a")
x = math.log(0)
x = unknown_name
x = unknown_name(3)
x += 1
x = G
x = G + n
x = len(n)
x = len(3)
x = len()
x = int(n)
x = int("a")
x = float("abc")
x = float(n)
x = isinstance(n)
x = getattr(n, "nothing")
x = getattr(n, n)
x = hasattr(n)
x = min(n)
x = min()
x = max(3, float("nan"))
x = max("a", 3)
x = max("a", n)
x = list(n)
x = str(n)
x = abs(n)
x = sorted((1, 2))
x = type(n)
x = range(4)
x = one_arg()
x = one_arg(1, 2)
x = one_arg(y=3)
x = one_arg(*n)
x = one_arg(*(1, 2))
x = one_arg(**{"x": 1})
x = recursive(n)
x = mutual_a(n)
x = recursive_ce(BLOCK)
x = returns_nothing(n)\ny = x + 1
x = returns_nothing(n) + 1
x = two_types(n)
x = one_arg
x = one_arg[(1,)](n)
x = one_arg.fn(n)
x = n(3)
x = (1, 2)(3)
x = "a"()
x = None()
a, b = n
a, b = None
a, *b = (1, 2, 3)
[a, b] = 1, 2
(a, b), c = 1, 2
a = b = c = 3
p[0] = 3
n.x = 3
p.x, y = 1, 2
n += "a"
n += None
n **= 2
n @= n
x = n ** 2
x = 2 ** n
x = n @ n
x = not n
x = n and 3
x = n or p
x = not p
x = -p
x = ~p
x = ~1.5
x = +n
x = p + p
x = p - p
x = p * 2
x = p < p
x = p == 0
x = p + 1.5
x = p & 3
x = n << 1.5
x = n // 1.5
x = n % "a"
x = n // 0
x = n % 0
x = 3 // 0
x = 3 % 0
x = 3 / 0
x = 3 << -1
x = (1, 2) + n
x = (1, 2) + 3
x = (1, 2) * n
x = (1, 2)[n]
x = (1, 2)[5]
x = (1, 2)["a"]
x = (1, 2)[0.5]
x = (1, 2) < (3, 4)
x = -(1, 2)
x = not (1, 2)
x = (1, 2) if n > 0 else (3, 4)
x = 1 if n > 0 else 2.0
x = 1 if tl.arange(0, 8) > 0 else 2
x = 1 if "a" else 2
x = n if n > 0 else None
if "a":\n    x = 1
if 1.5:\n    x = 1
if tl.arange(0, 8) > 3:\n    x = 1
if tl.float32:\n    x = 1
if (1, 2):\n    x = 1
if p:\n    pass
if one_arg:\n    x = 1
if n > 0:\n    y = 1\nz = y
if n > 0:\n    y = 1\nelse:\n    y = 1.0
y = 1\nif n > 0:\n    y = 1.0
y = None\nif n > 0:\n    y = 1
y = 1\nif n > 0:\n    y = None
y = 1\nif n > 0:\n    y = (1, 2)
y = (1, 2)\nif n > 0:\n    y = (1, 2, 3)
y = 1\nfor i in range(n):\n    y = 1.0
y = 1\nfor i in range(n):\n    y = tl.arange(0, 8)
y = None\nfor i in range(n):\n    y = i
y: tl.constexpr = 1\nfor i in range(n):\n    y = i
y: tl.constexpr = n
y: tl.constexpr = 1\ny: tl.constexpr = 2
y: tl.constexpr
y: int
y: tl.constexpr = tl.arange(0, 4)
for i in range(n):\n    z = 1\ny = z
while True:\n    pass
while n:\n    n -= 1
while n > 0.5:\n    n = 1.0
while tl.arange(0, 8) > 0:\n    pass
while "a":\n    pass
while None:\n    pass
while p:\n    p += 1
return 1, 2
return\nx = unknown
return lambda: 3
return one_arg
if n > 0:\n    return 1\nreturn 2.0
import math
from math import sin
raise ValueError("x")
raise
try:\n    pass\nfinally:\n    pass
try:\n    pass\nexcept* ValueError:\n    pass
pass
...
"doc"
n
1; 2; 3
x = (lambda: 3)()
x = [*range(3)]
x = [*(1, 2), 3]
x = (*(1, 2), *(3, 4))
x = print
x = tl
x = math
x = tl.float32
x = tl.float32(3)
x = tl.float32 + 1
x = tl.constexpr(n)
x = tl.constexpr("a")
x = tl.tuple((1, 2))
x = tl.tuple(n)
x = tl.tensor(n, tl.int32)
x = tl.tensor(3)
x = tl.dtype("fp99")
x = tl.pointer_type(3)
x = tl.block_type(tl.int32, (3,))
x = Point(1)
x = Point(1, 2, 3)
x = Point(x=1, z=2)
x = Point(1, 2).z
x = Point(1, 2)[n]
x = Point
x = tl.rand(n, 3)
x = tl.rand(p, tl.arange(0, 8))
x = tl.rand(1.5, tl.arange(0, 8))
x = tl.rand(n, tl.zeros((8,), tl.float32))
x = tl.randint4x(n)
x = tl.swizzle2d(1, 2, 3)
x = tl.softmax(n)
x = tl.dot_scaled(n, n, "e4m3", n, n, "e4m3")
x = tl.dot_scaled(tl.zeros((16, 32), tl.uint8), None, "e9m9", tl.zeros((32, 16), tl.uint8), None, "e4m3")
x = tl.zeros((8,), tl.float8e4b8)
x = tl.debug_barrier(3)
x = tl.debug_barrier() + 1
x = tl.extra.libdevice.sin(n)
x = tl.extra.libdevice.nothing(n)
x = tl.extra.libdevice.sin(3.0, 4.0)
x = tl.extra.libdevice.fast_tanhf(tl.zeros((8,), tl.float32))
x = tl.view(tl.arange(0, 8), (3,))
x = tl.arange(0, 8).sum(5)
x = tl.arange(0, 8).reshape(3)
x = tl.arange(0, 8).bogus(3)
x = n.dtype.bogus
x = n.shape[0]
x = tl.arange(0, 8).shape[3]
x = tl.arange(0, 8).shape[n]
x = tl.arange(0, 8).numel + "a"
x = tl.arange(0, 8).item()
x = n.handle
x = n._x
x = n.__class__
x = n.__add__(3)
x = BLOCK.value
x = BLOCK.foo
x = BLOCK.bit_length()
x = CE.value
x = __name__
x = __file__
x = exec("1")
x = eval("1")
x = open("f")
x = globals()
x = super()
x = BLOCK[0]
x = BLOCK()
x = BLOCK + "a"
x = "a" + BLOCK
x = BLOCK < "a"
x = BLOCK / 0
x = BLOCK.__class__.__bases__
x = tl.core.builtin
x = tl.core.extern_elementwise("", "", [n], {}, True)
x = tl.condition(n)
x = tl.range(4)
x = tl.static_range(4)
x = tl.PropagateNan.ALL
x = tl.PropagateNan.BOGUS
x = slice(1, 2)
x = tl.slice(1, 2)
x = "a" if n > 0 else "b"
x = tl.load if n > 0 else tl.store
x = (n > 0) + (n > 0) - "a"
async def f():\n    pass
def f(x=[]):\n    return x
"""
