"""The layouts of AMD's matrix instructions, rotating rows in LDS, and copies of a wave to LDS.

    AmdMfma           an accumulator of CDNA's mfma, 64 lanes     AmdMfma(3, (2, 2), (32, 32, 8), True)
    AmdWmma           one of RDNA's wmma, 32 lanes                AmdWmma(2, True, tile_grid((2, 2)))
    RotatingShared    `SwizzledShared` whose phase also changes where the plain one would repeat

Both kinds of accumulator are *transposed* as a rule: the instruction is called with its operands exchanged, and a
thread then holds neighbours of a row.

>>> from tilework.layouts.to_linear import to_linear
>>> to_linear(AmdMfma(3, (2, 2), (32, 32, 8), True), (64, 64)).bases[0]
('register', ((0, 1), (0, 2), (0, 8), (0, 16)))
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from tilework.layouts.construct import SWIZZLES, Swizzle
from tilework.layouts.encodings import (
    Accumulator,
    Bases,
    Distributed,
    DotOperand,
    Ints,
    Linear,
    SwizzledShared,
    check_cga,
    check_powers_of_two,
    spelled,
)
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import (
    OPERAND_RULES,
    RULES,
    Shape,
    Tile,
    split_blocks,
    swizzled,
    to_linear,
)
from tilework.light_dataclass import light_dataclass


@light_dataclass
class TileGrid:
    """The tiles of a program, counted in tiles: a basis for each bit of the registers and of the warps."""

    register: Bases = ()
    warp: Bases = ()


def tile_grid(warps: Ints, tiles: Ints = ()) -> TileGrid:
    """Return the grid of this many warps along each dimension, each with this many tiles side by side; the last
    dimension comes first.

    >>> tile_grid((2, 2), (2, 2))
    TileGrid(register=((0, 1), (1, 0)), warp=((0, 2), (2, 0)))
    """
    size = [1] * len(warps)

    def grown(counts: Ints) -> Iterator[Ints]:
        for dim in reversed(range(len(counts))):
            end = size[dim] * counts[dim]
            while size[dim] < end:
                yield tuple(size[dim] if other == dim else 0 for other in range(len(size)))
                size[dim] *= 2

    return TileGrid(tuple(grown(tiles)), tuple(grown(warps)))


WAVE = 64  # lanes of a wave that has mfma
ONES = spelled(implied=lambda known: (1,) * len(known["warps_per_cta"]))


@light_dataclass
class AmdMfma(Accumulator, name="amd_mfma", alias="mma"):
    """The accumulator of an mfma of `instr_shape` (m, n, k): version 1 to 4 are CDNA 1 to 4.

    `tiles_per_warp`: the instructions of a warp side by side. `element_bit_width` is 64 for f64.
    """

    version: int
    warps_per_cta: Ints = field(metadata=spelled("warpsPerCTA"))
    instr_shape: Ints
    is_transposed: bool
    cga: Bases = field(default=(), kw_only=True, metadata=spelled("CGALayout"))
    tiles_per_warp: Ints = field(default=(), kw_only=True, metadata=ONES)
    element_bit_width: int = field(default=32, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 <= self.version <= 4:
            raise LayoutError("version must be in the [0, 4] range")
        if self.instr_shape[:2] not in ((32, 32), (16, 16), (64, 4), (4, 64)) or len(self.instr_shape) != 3:
            raise LayoutError(f"invalid (mDim, nDim) combination: ({', '.join(map(str, self.instr_shape[:2]))})")
        if self.element_bit_width not in (32, 64):
            raise LayoutError("elementBitWidth must be 32 or 64")
        check_accumulator(self)

    def check_operand(self, op_idx: int, k_width: int) -> None:
        if k_width == 0:
            raise LayoutError("ttg.dot_op kWidth parameter is mandatory for MFMA parent")
        check_powers_of_two("kWidth", (k_width,))


@light_dataclass
class AmdWmma(Accumulator, name="amd_wmma", alias="mma"):
    """The accumulator of a wmma: version 1 is RDNA3, 2 RDNA4, 3 gfx1250.

    `tiles`: where the instructions of a warp and the warps are, before all of that is repeated.
    """

    version: int
    is_transpose: bool
    tiles: TileGrid = field(default_factory=TileGrid, metadata=spelled("ctaLayout", implied=lambda _: None))
    cga: Bases = field(default=(), kw_only=True, metadata=spelled("CGALayout"))
    instr_shape: Ints = field(default=(16, 16, 16), kw_only=True)
    own_rank: int = field(default=2, kw_only=True, metadata=spelled("rank", implied=lambda known: wmma_rank(known)))

    def __post_init__(self) -> None:
        if self.version not in (*K_WIDTHS, 3):
            raise LayoutError("WMMA version must be in the [1, 3] range")
        if len(self.instr_shape) != 3:
            raise LayoutError(f"instrShape = {list(self.instr_shape)} must have three integers")
        check_powers_of_two("instrShape", self.instr_shape)
        object.__setattr__(self, "own_rank", max(self.own_rank, wmma_rank({"tiles": self.tiles, "cga": self.cga})))
        if self.rank not in (2, 3):
            raise LayoutError(f"{self.NAME} has rank 2 or 3, not {self.rank}")
        for basis in (*self.tiles.register, *self.tiles.warp):
            if len(basis) != self.rank or any(value < 0 or value & (value - 1) for value in basis):
                raise LayoutError(f"the basis {list(basis)} of ctaLayout must be {self.rank} powers of two or zeros")
            if sum(map(bool, basis)) > 1:
                raise LayoutError(f"the basis {list(basis)} of ctaLayout must move in one dimension at most")
        check_cga(self.cga, self.rank)

    @property
    def rank(self) -> int:
        return self.own_rank

    def check_operand_parent(self, op_idx: int, parent: Distributed) -> None:
        """The blocks of a cluster share an operand along the dimension of the result that it does not have."""
        if any(not any(basis) for basis in self.cga) or len(set(self.cga)) < len(self.cga):
            raise LayoutError("Accumulator CGA layout should not broadcast or have repeated rows")
        missing = self.rank - 1 - op_idx
        shared = tuple(tuple(0 if dim == missing else value for dim, value in enumerate(basis)) for basis in self.cga)
        if not isinstance(parent, AmdWmma) or replace(parent, cga=self.cga) != self:
            raise LayoutError("Incompatible parent encoding")
        if parent.cga != shared:
            raise LayoutError(f"Incompatible CGA layout for operand {op_idx}")

    def check_operand(self, op_idx: int, k_width: int) -> None:
        if self.version == 3 and k_width == 0:
            raise LayoutError("ttg.dot_op kWidth parameter is mandatory for WMMA v3")
        if self.version == 3:
            check_powers_of_two("kWidth", (k_width,))
        elif k_width not in (allowed := K_WIDTHS[self.version]):
            widths = "/".join(map(str, allowed))
            raise LayoutError(f"ttg.dot_op kWidth parameter must be {widths} for WMMA v{self.version}")


K_WIDTHS = {1: (8, 16), 2: (4, 8, 16)}  # of operands, by version of wmma; any of version 3


def wmma_rank(known: Mapping[str, Any]) -> int:
    """Return the rank that the bases of an `AmdWmma` have; 2 where there are none."""
    tiles = known["tiles"]
    return next((len(basis) for basis in (*tiles.register, *tiles.warp, *known["cga"])), 2)


def check_accumulator(encoding: AmdMfma) -> None:
    """Refuse grids that are wrong; `tiles_per_warp` defaults to 1."""
    if encoding.rank not in (2, 3):
        raise LayoutError(f"{encoding.NAME} has rank 2 or 3, not {encoding.rank}")
    if not encoding.tiles_per_warp:
        object.__setattr__(encoding, "tiles_per_warp", (1,) * encoding.rank)
    if len(encoding.tiles_per_warp) != encoding.rank:
        raise LayoutError("tilesPerWarp and warpsPerCTA must have the same rank")
    check_powers_of_two("warpsPerCTA", encoding.warps_per_cta)
    check_powers_of_two("tilesPerWarp", encoding.tiles_per_warp)
    check_cga(encoding.cga, encoding.rank)


@light_dataclass
class RotatingShared(SwizzledShared, name="amd_rotating_shared", alias="shared"):
    """`SwizzledShared`, but rows `max_phase * per_phase` apart do not have the same phase: they start in other banks
    too."""

    def phase(self, row: int) -> int:
        group = row // self.per_phase
        return (group % self.max_phase) ^ (group // self.max_phase % self.max_phase)


# Linear layouts


def mfma(encoding: AmdMfma, shape: Shape) -> LinearLayout:
    """Groups of four registers along one dimension, lanes along the other; the rest of the instruction in registers."""
    rows, columns = encoding.rank - 2, encoding.rank - 1
    m, n = encoding.instr_shape[:2]
    inner, outer, wide = (columns, rows, m) if encoding.is_transposed else (rows, columns, n)
    group = 1 if encoding.element_bit_width == 64 else 4
    tile = accumulator_tile(encoding.rank).id(group, "register", inner).id(wide, "lane", outer)
    tile.id(WAVE // wide, "lane", inner).id(max(m * n // (WAVE * group), 1), "register", inner)
    return spread(encoding, tile, shape)


def wmma(encoding: AmdWmma, shape: Shape) -> LinearLayout:
    """Sixteen lanes along one dimension; along the other registers and the two halves of the wave."""
    rows, columns = encoding.rank - 2, encoding.rank - 1
    along, across = (rows, columns) if encoding.is_transpose else (columns, rows)
    tile = accumulator_tile(encoding.rank)
    if encoding.version == 1:  # the halves alternate
        tile.id(16, "lane", along).id(2, "lane", across).id(8, "register", across)
    else:
        tile.id(8, "register", across).id(16, "lane", along).id(2, "lane", across)
    for name, bases in (("register", encoding.tiles.register), ("warp", encoding.tiles.warp)):
        tile.bits_of(name, bases, (4, 4))
    return tile.fit(encoding.cga, shape)


def accumulator_tile(rank: int) -> Tile:
    return Tile(tuple(reversed(range(rank))))


def spread(encoding: AmdMfma, tile: Tile, shape: Shape) -> LinearLayout:
    """Extend an instruction's tile to all warps: every column is covered before rows repeat."""
    rows, columns = encoding.rank - 2, encoding.rank - 1
    warps, tiles = encoding.warps_per_cta, encoding.tiles_per_warp
    tile.id(tiles[columns], "register", columns).id(warps[columns], "warp", columns)
    _, wanted = split_blocks(encoding.cga, shape)
    tile.id(1 << max(wanted[columns] - tile.bits[columns], 0), "register", columns)
    tile.id(tiles[rows], "register", rows)
    return tile.grid("warp", warps, tuple(reversed(range(columns)))).fit(encoding.cga, shape)


def mfma_operand(encoding: DotOperand, shape: Shape) -> LinearLayout:
    """`k_width` neighbours along K in registers, the lanes beyond the other dimension along K."""
    parent, k, other, tile = operand_tile(encoding)
    assert isinstance(parent, AmdMfma)
    m, n = parent.instr_shape[:2]
    wide, thin = (m, n) if encoding.op_idx == 0 else (n, m)
    tile.id(encoding.k_width, "register", k).id(wide, "lane", other).id(WAVE // wide, "lane", k)
    tile.id(16 if thin == 4 else 1, "register", k)  # sixteen instructions share the small operand
    cover(tile, encoding.cga_bases, shape, k)
    tile.id(parent.tiles_per_warp[other], "register", other)
    return tile.grid("warp", parent.warps_per_cta, tuple(reversed(range(encoding.rank))), k).fit(
        encoding.cga_bases, shape
    )


def mfma_scales(parent: AmdMfma, op_idx: int, shape: Shape) -> LinearLayout:
    """The layout of the scales of a scaled mfma, [rows or columns, K / 32]: those of a row in the lanes of that row,
    one for 32 elements.

    >>> mfma_scales(AmdMfma(4, (2, 2), (32, 32, 64), True), 1, (64, 4)).bases[0]
    ('register', ((0, 2),))
    """
    wide, (down, across) = parent.instr_shape[op_idx], parent.warps_per_cta
    tile = Tile((1, 0)).id(wide, "lane", 0).id(WAVE // wide, "lane", 1)
    cover(tile, parent.cga, shape, 1)
    warps, order = ((down, across), (1, 0)) if op_idx == 0 else ((across, down), (0, 1))
    return tile.grid("warp", warps, order, 1).fit(parent.cga, shape)


def wmma_operand(encoding: DotOperand, shape: Shape) -> LinearLayout:
    """The second half of the wave repeats the first (version 1) or continues along K."""
    parent, k, other, tile = operand_tile(encoding)
    assert isinstance(parent, AmdWmma)
    tile.id(encoding.k_width, "register", k).id(16, "lane", other)
    tile = tile.copies(2, "lane") if parent.version == 1 else tile.id(2, "lane", k)
    tile.id(max(parent.instr_shape[2] // (2 * encoding.k_width), 1), "register", k)
    cover(tile, encoding.cga_bases, shape, k)
    tile.bits_of("register", [basis for basis in parent.tiles.register if any(without(basis, k))], (4, 4), k)
    return tile.bits_of("warp", parent.tiles.warp, (4, 4), k).fit(encoding.cga_bases, shape)


def without(basis: Ints, dim: int) -> Ints:
    """Return a basis with 0 along `dim`."""
    return (*basis[:dim], 0, *basis[dim + 1 :])


def operand_tile(encoding: DotOperand) -> tuple[Distributed, int, int, Tile]:
    """Return the accumulator, the dimension K, the other one, and a tile that grows along K first."""
    k = encoding.k_dim
    other = encoding.rank - 2 if encoding.op_idx == 0 else encoding.rank - 1
    return encoding.parent, k, other, Tile((k, other, *range(encoding.rank - 2)))


def cover(tile: Tile, cga: Bases, shape: Shape, dim: int) -> None:
    """Add registers until the tile has all of a dimension."""
    _, wanted = split_blocks(cga, shape)
    tile.id(1 << max(wanted[dim] - tile.bits[dim], 0), "register", dim)


def wide_rows(encoding: Distributed, shape: Shape, bits: int) -> Linear | None:
    """Return the layout in which CDNA4 stores 16-bit results: two bits of columns exchanged, so that a thread has 8
    neighbours. None: unchanged.

    >>> wide_rows(AmdMfma(4, (1, 1), (32, 32, 16), True), (32, 32), 16).layout.bases[0]
    ('register', ((0, 1), (0, 2), (0, 4), (0, 16)))
    """
    if not isinstance(encoding, AmdMfma) or encoding.version != 4 or not encoding.is_transposed:
        return None
    other = {32: 8, 16: 16}.get(encoding.instr_shape[0], 0)
    if bits != 16 or len(shape) != 2 or shape[1] < 32 or not other or (other == 16 and encoding.warps_per_cta[1] > 1):
        return None
    exchanged, linear = {4: other, other: 4}, to_linear(encoding, shape)
    bases = {name: tuple((row, exchanged.get(at, at)) for row, at in vectors) for name, vectors in linear.bases}
    return Linear(LinearLayout(bases, linear.outs))


RULES |= {AmdMfma: mfma, AmdWmma: wmma, RotatingShared: swizzled}
OPERAND_RULES |= {AmdMfma: mfma_operand, AmdWmma: wmma_operand}


# Operands in LDS


def operand_swizzle(dot: DotOperand, shape: Shape, order: Ints, bits: int, need_trans: bool, cga: Bases) -> Swizzle:
    """Lanes read `k_width` neighbours along K, 16 bytes at most; rows that share banks have other phases."""
    parent = dot.parent
    assert isinstance(parent, AmdMfma | AmdWmma)
    is_wide = isinstance(parent, AmdMfma) and parent.version == 4  # its LDS has 64 banks
    if order[0] != dot.k_dim and not (is_wide and bits <= 16):
        return 1, 1, 1
    inner = 1 << split_blocks(cga, shape)[1][order[0]]
    vec = dot.k_width if isinstance(parent, AmdMfma) else min(dot.k_width * bits, 128) // bits
    per_phase = max(1, (64 if is_wide else 32) * 32 // bits // inner)
    max_phase = 4 if parent.instr_shape[0] == 4 else max(1, min(16 // per_phase, inner // vec))
    return vec, per_phase, max_phase


SWIZZLES |= {AmdMfma: operand_swizzle, AmdWmma: operand_swizzle}


class WaveCopy(NamedTuple):
    """The arrangement of a wave's copy to LDS, for instructions that write lane after lane from one offset: the
    elements of a wave, and the columns of P^-1.

        lane l, register r, warp w     is at offset P l ^ U(r, w), in elements; P l is less than `size`
        the instruction                writes for lane i at i * width: the location of lane P^-1 (i ^ U)"""

    size: int
    back: tuple[int, ...]

    @property
    def is_in_order(self) -> bool:
        return self.back == tuple(1 << bit for bit in range(len(self.back)))


def wave_copy(offsets: LinearLayout, width: int) -> WaveCopy | None:
    """Return the copy of `width` neighbours of each lane; None if they are not contiguous, or the wave is not in one
    piece."""
    registers, lanes = offsets.by_in["register"], offsets.by_in["lane"]
    steps = width.bit_length() - 1
    size = width << len(lanes)
    if list(registers[:steps]) != [1 << bit for bit in range(steps)]:
        return None
    if any(column % width for column in (*lanes, *registers[steps:], *offsets.by_in["warp"])):
        return None
    if 0 in (*registers, *offsets.by_in["warp"]) or any(column >= size for column in lanes):
        return None
    permutation = LinearLayout({"lane": [(column // width,) for column in lanes]}, (("slot", size // width),))
    return WaveCopy(size, permutation.invert().by_in["slot"]) if permutation.is_invertible else None
