"""Habits from NumPy, CUDA and plain Python that kernels do not have, and functions called in the wrong way."""

import tilework
import tilework.language as tl

STRICT = False


@tilework.jit
def add_range(x, N: tl.constexpr):
    return x + tl.arange(0, N)


@tilework.jit
def two(x):
    return x, x + 1


@tilework.jit
def start_of_arange(p, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(pid * BLOCK, (pid + 1) * BLOCK)


@tilework.jit
def max_of_two_tiles(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    tl.store(p + tl.arange(0, BLOCK), tl.max(x, x + 1))


@tilework.jit
def cdiv_of_the_host(p, n, BLOCK: tl.constexpr):
    for i in range(tilework.cdiv(n, BLOCK)):
        tl.store(p + i, 0.0)


@tilework.jit
def power_of_two_of_the_host(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, tilework.next_power_of_2(n))


@tilework.jit
def store_behind_and(p, n, BLOCK: tl.constexpr):
    n > 2 and tl.store(p, 1.0)


@tilework.jit
def tuple_as_mask(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(p + i, mask=(i >= 0, i < n))


@tilework.jit
def tuple_stored(p, n, BLOCK: tl.constexpr):
    tl.store(p, two(n))


@tilework.jit
def descriptor_as_pointer(p, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [64, 64], [64, 1], [16, 16])
    x = tl.load(d)


@tilework.jit
def descriptor_without_offsets(p, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [64, 64], [64, 1], [16, 16])
    x = d.load()


@tilework.jit
def too_many_for_a_helper(p, n, BLOCK: tl.constexpr):
    x = add_range(n, BLOCK, 3)


@tilework.jit
def missing_for_a_helper(p, n, BLOCK: tl.constexpr):
    x = add_range(n)


@tilework.jit
def run_time_value_for_a_helper(p, n, BLOCK: tl.constexpr):
    x = add_range(n, n)


@tilework.jit
def random_without_offsets(p, n, BLOCK: tl.constexpr):
    x = tl.rand(n)


@tilework.jit
def sum_of_one_number(p, n, BLOCK: tl.constexpr):
    x = tl.sum(tl.load(p), axis=0)


@tilework.jit
def sum_of_two_axes(p, n, BLOCK: tl.constexpr):
    x = tl.sum(tl.zeros((8, 8), tl.float32), axis=(0, 1))


@tilework.jit
def split_without_pairs(p, n, BLOCK: tl.constexpr):
    a, b = tl.split(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def size_to_be_inferred(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK)).reshape(8, -1)


@tilework.jit
def too_many_axes(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))[:, :, None]


@tilework.jit
def gather_of_floats(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = tl.gather(x, x, 0)


@tilework.jit
def transpose_of_a_tile(p, n, BLOCK: tl.constexpr):
    x = tl.trans(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def text_as_condition(p, n, BLOCK: tl.constexpr):
    tl.device_assert("n is too large")


@tilework.jit
def quotient_and_rest(p, n, BLOCK: tl.constexpr):
    q, r = divmod(n, 3)


@tilework.jit
def bool_of_a_number(p, n, BLOCK: tl.constexpr):
    if bool(tl.load(p)):
        tl.store(p, 1.0)


@tilework.jit
def text_of_a_number(p, n, BLOCK: tl.constexpr):
    tl.device_print(str(n), n)


@tilework.jit
def reversed_range(p, n, BLOCK: tl.constexpr):
    for i in reversed(range(n)):
        tl.store(p + i, 1.0)


@tilework.jit
def index_of_a_thread(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.thread_id(0), 1.0)


@tilework.jit
def index_of_a_block(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.block_id(0), 1.0)


@tilework.jit
def barrier_of_threads(p, n, BLOCK: tl.constexpr):
    tl.syncthreads()


@tilework.jit
def shared_memory(p, n, BLOCK: tl.constexpr):
    s = tl.shared((BLOCK,), tl.float32)


@tilework.jit
def relu(p, n, BLOCK: tl.constexpr):
    x = tl.relu(tl.load(p))


@tilework.jit
def hyperbolic_tangent(p, n, BLOCK: tl.constexpr):
    x = tl.math.tanh(tl.load(p))


@tilework.jit
def linspace(p, n, BLOCK: tl.constexpr):
    x = tl.linspace(0, 1, BLOCK)


@tilework.jit
def stack(p, n, BLOCK: tl.constexpr):
    x = tl.stack((p, p))


@tilework.jit
def bool_dtype(p, n, BLOCK: tl.constexpr):
    x = tl.load(p).to(tl.bool)


@tilework.jit
def data_pointer(p, n, BLOCK: tl.constexpr):
    x = tl.load(p.data_ptr())


@tilework.jit
def launch_in_a_kernel(p, n, BLOCK: tl.constexpr):
    add_range[(1,)](n, BLOCK)


@tilework.jit
def swapped_store(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(tl.load(p + i), p + i)


@tilework.jit
def swapped_load(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(p + i, 0.0, i < n)


@tilework.jit
def swapped_full(p, n, BLOCK: tl.constexpr):
    x = tl.full(0.0, (BLOCK,), tl.float32)


@tilework.jit
def swapped_atomic(p, n, BLOCK: tl.constexpr):
    tl.atomic_add(1.0, p)


@tilework.jit
def tile_through_a_row(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(p + i[:, None] * 16 + i[None, :])
    tl.store(p + i, x)


@tilework.jit
def float_in_a_while(p, n, BLOCK: tl.constexpr):
    for i in range(0, n, 0.5):
        tl.store(p, i)


@tilework.jit
def range_of_a_tile(p, n, BLOCK: tl.constexpr):
    for i in range(tl.arange(0, BLOCK)):
        tl.store(p, 1.0)


@tilework.jit
def mask_as_an_index(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = x[x > 0]


@tilework.jit
def dtypes_of_a_dot(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((16, 16), tl.float32)
    y = tl.dot(x, x.to(tl.float16))


@tilework.jit
def accumulator_of_another_shape(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((16, 16), tl.float32)
    y = tl.dot(x, x, tl.zeros((16, 32), tl.float32))


@tilework.jit
def accumulator_of_another_type(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((16, 16), tl.float32)
    y = tl.dot(x, x, tl.zeros((16, 16), tl.int32))


@tilework.jit
def comparison_with_a_text(p, n, BLOCK: tl.constexpr):
    if n == "relu":
        tl.store(p, 1.0)


@tilework.jit
def step_of_arange(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK, step=2)


@tilework.jit
def with_statement(p, n, BLOCK: tl.constexpr):
    with tl.load(p) as x:
        tl.store(p, x)


@tilework.jit
def formatted_name(p, n, BLOCK: tl.constexpr):
    name = f"value {n}"


@tilework.jit
def lambda_called(p, n, BLOCK: tl.constexpr):
    tl.store(p, (lambda x: x * 2)(tl.load(p)))


@tilework.jit
def reduce_with_lambda(p, n, BLOCK: tl.constexpr):
    x = tl.reduce(tl.load(p + tl.arange(0, BLOCK)), 0, lambda a, b: a * b)


@tilework.jit
def reduce_with_a_builtin(p, n, BLOCK: tl.constexpr):
    x = tl.reduce(tl.load(p + tl.arange(0, BLOCK)), 0, max)


@tilework.jit
def member_of_a_tuple(p, n, BLOCK: tl.constexpr):
    if n in (1, 2, 3):
        tl.store(p, 1.0)


@tilework.jit
def number_as_a_loop(p, n, BLOCK: tl.constexpr):
    for i in n:
        tl.store(p + i, 1.0)


@tilework.jit
def elements_of_a_tile(p, n, BLOCK: tl.constexpr):
    for x in tl.load(p + tl.arange(0, BLOCK)):
        tl.store(p, x)


@tilework.jit
def length_of_a_tile(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = tl.sum(x, 0) / len(x)


@tilework.jit
def range_with_a_wrong_keyword(p, n, BLOCK: tl.constexpr):
    for i in tl.range(0, n, stages=3):
        tl.store(p + i, 1.0)


@tilework.jit
def joined_shapes(p, n, BLOCK: tl.constexpr):
    x = tl.join(tl.arange(0, BLOCK), tl.arange(0, 8))


@tilework.jit
def broadcast_of_another_rank(p, n, BLOCK: tl.constexpr):
    x = tl.broadcast_to(tl.arange(0, BLOCK), (BLOCK, 8))
