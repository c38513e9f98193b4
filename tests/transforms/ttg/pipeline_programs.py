"""Loops in TTGIR that the pipeliner meets, as text: each a function of pointers and sizes that can be evaluated.

    program("plain")          a product of 64 x 32 and 32 x 64 blocks, along K
    program("plain", sm=90)   the same with products of warp groups

`BODIES` holds the bodies. In all of them `%qa` and `%qb` are the pointers of this iteration, `%acc` the sum so far, and
`%k` the number of the iteration, of `%n`; they define what is yielded: `%d`, `%na`, `%nb`.
"""

HEAD = """
#A = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
"""
MMA = {
    80: """#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dA = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#dB = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
""",
    90: """#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#dA = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#sA = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#sB = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
""",
}
FUNCTION = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:SM", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                         %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                         %idx: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32, %lb: i32, %step: i32, %odd: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c16 = arith.constant 16 : i32
    %sa = arith.constant dense<32> : tensor<64x32xi32, #A>
    %sb = arith.constant dense<2048> : tensor<32x64xi32, #B>
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %za = arith.constant dense<0.0> : tensor<64x32xf16, #A>
    %oa = arith.constant dense<1.5> : tensor<64x32xf16, #A>
    %ra = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #A}>>
    %rae = tt.expand_dims %ra {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #A}>> -> tensor<64x1xi32, #A>
    %rowa = arith.constant dense<512> : tensor<64x1xi32, #A>
    %raw = arith.muli %rae, %rowa : tensor<64x1xi32, #A>
    %rab = tt.broadcast %raw : tensor<64x1xi32, #A> -> tensor<64x32xi32, #A>
    %ca = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #A}>>
    %cae = tt.expand_dims %ca {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #A}>> -> tensor<1x32xi32, #A>
    %cab = tt.broadcast %cae : tensor<1x32xi32, #A> -> tensor<64x32xi32, #A>
    %offa = arith.addi %rab, %cab : tensor<64x32xi32, #A>
    %spa = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #A>
    %pa = tt.addptr %spa, %offa : tensor<64x32x!tt.ptr<f16>, #A>, tensor<64x32xi32, #A>
    %spw = tt.splat %w : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #A>
    %pw = tt.addptr %spw, %offa : tensor<64x32x!tt.ptr<f16>, #A>, tensor<64x32xi32, #A>
    %rb = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #B}>>
    %rbe = tt.expand_dims %rb {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #B}>> -> tensor<32x1xi32, #B>
    %rowb = arith.constant dense<64> : tensor<32x1xi32, #B>
    %rbw = arith.muli %rbe, %rowb : tensor<32x1xi32, #B>
    %rbb = tt.broadcast %rbw : tensor<32x1xi32, #B> -> tensor<32x64xi32, #B>
    %cb = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #B}>>
    %cbe = tt.expand_dims %cb {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #B}>> -> tensor<1x64xi32, #B>
    %cbb = tt.broadcast %cbe : tensor<1x64xi32, #B> -> tensor<32x64xi32, #B>
    %offb = arith.addi %rbb, %cbb : tensor<32x64xi32, #B>
    %spb = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>, #B>
    %pb = tt.addptr %spb, %offb : tensor<32x64x!tt.ptr<f16>, #B>, tensor<32x64xi32, #B>
    %rc = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #mma}>>
    %rce = tt.expand_dims %rc {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xi32, #mma>
    %rowc = arith.constant dense<64> : tensor<64x1xi32, #mma>
    %rcw = arith.muli %rce, %rowc : tensor<64x1xi32, #mma>
    %rcb = tt.broadcast %rcw : tensor<64x1xi32, #mma> -> tensor<64x64xi32, #mma>
    %cc = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>>
    %cce = tt.expand_dims %cc {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>> -> tensor<1x64xi32, #mma>
    %ccb = tt.broadcast %cce : tensor<1x64xi32, #mma> -> tensor<64x64xi32, #mma>
    %offc = arith.addi %rcb, %ccb : tensor<64x64xi32, #mma>
    %spc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    %pc = tt.addptr %spc, %offc : tensor<64x64x!tt.ptr<f32>, #mma>, tensor<64x64xi32, #mma>
LOOP
    tt.store %pc, %r#0 : tensor<64x64x!tt.ptr<f32>, #mma>
    %last = tt.load %r#1 : tensor<64x32x!tt.ptr<f16>, #A>
    tt.store %pw, %last : tensor<64x32x!tt.ptr<f16>, #A>
    tt.return
  }
}
"""  # noqa: E501
LOOP = """    %r:3 = scf.for %k = LOWER to %n step STEP iter_args(%acc = %z, %qa = %pa, %qb = %pb) -> (tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #A>, tensor<32x64x!tt.ptr<f16>, #B>) : i32 {
BODY      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #A>, tensor<32x64x!tt.ptr<f16>, #B>
    } ATTRIBUTES"""  # noqa: E501

LOAD_A = "%x = tt.load %qa : tensor<64x32x!tt.ptr<f16>, #A>\n"
LOAD_B = "%y = tt.load %qb : tensor<32x64x!tt.ptr<f16>, #B>\n"
NEXT = """%na = tt.addptr %qa, %sa : tensor<64x32x!tt.ptr<f16>, #A>, tensor<64x32xi32, #A>
%nb = tt.addptr %qb, %sb : tensor<32x64x!tt.ptr<f16>, #B>, tensor<32x64xi32, #B>
"""
DOT = {
    80: """%NAME_a = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
%NAME_b = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
%NAME = tt.dot %NAME_a, %NAME_b, %SUM : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> tensor<64x64xf32, #mma>
""",
    90: """%NAME_a = ttg.local_alloc %x : (tensor<64x32xf16, #A>) -> !ttg.memdesc<64x32xf16, #sA, #smem>
%NAME_b = ttg.local_alloc %y : (tensor<32x64xf16, #B>) -> !ttg.memdesc<32x64xf16, #sB, #smem>
%NAME = ttng.warp_group_dot %NAME_a, %NAME_b, %SUM {inputPrecision = 0 : i32} : !ttg.memdesc<64x32xf16, #sA, #smem> * !ttg.memdesc<32x64xf16, #sB, #smem> -> tensor<64x64xf32, #mma>
""",  # noqa: E501
}
IS_ODD = "%kk = arith.remsi %k, %c2 : i32\n%co = arith.cmpi eq, %kk, %odd : i32\n"
BODIES = {
    "plain": LOAD_A + LOAD_B + "DOT(d, acc)" + NEXT,
    "masked": """%ks = tt.splat %k : i32 -> tensor<64x32xi32, #A>
%m = arith.cmpi sle, %ks, %sa : tensor<64x32xi32, #A>
%x = tt.load %qa, %m, %za : tensor<64x32x!tt.ptr<f16>, #A>
"""
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT,
    "other": """%ks = tt.splat %k : i32 -> tensor<64x32xi32, #A>
%twos = tt.splat %c2 : i32 -> tensor<64x32xi32, #A>
%m = arith.cmpi ne, %ks, %twos : tensor<64x32xi32, #A>
%x = tt.load %qa, %m, %oa : tensor<64x32x!tt.ptr<f16>, #A>
"""
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT,
    "indirect": """%ip = tt.addptr %idx, %k : !tt.ptr<i32>, i32
%i = tt.load %ip : !tt.ptr<i32>
%i16 = arith.muli %i, %c16 : i32
%is = tt.splat %i16 : i32 -> tensor<64x32xi32, #A>
%qi = tt.addptr %pa, %is : tensor<64x32x!tt.ptr<f16>, #A>, tensor<64x32xi32, #A>
%x = tt.load %qi : tensor<64x32x!tt.ptr<f16>, #A>
"""
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT,
    "if_before": IS_ODD
    + """%qq = scf.if %co -> (tensor<64x32x!tt.ptr<f16>, #A>) {
  scf.yield %pa : tensor<64x32x!tt.ptr<f16>, #A>
} else {
  scf.yield %qa : tensor<64x32x!tt.ptr<f16>, #A>
}
%x = tt.load %qq : tensor<64x32x!tt.ptr<f16>, #A>
"""
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT,
    "if_after": LOAD_A
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT
    + IS_ODD
    + "scf.if %co {\n  tt.store %pc, %d : tensor<64x64x!tt.ptr<f32>, #mma>\n}\n",
    "if_result": LOAD_A
    + LOAD_B
    + "DOT(s, acc)"
    + NEXT
    + IS_ODD
    + """%d = scf.if %co -> (tensor<64x64xf32, #mma>) {
  tt.store %pc, %s : tensor<64x64x!tt.ptr<f32>, #mma>
  scf.yield %z : tensor<64x64xf32, #mma>
} else {
  scf.yield %s : tensor<64x64xf32, #mma>
}
""",
    "used_twice": LOAD_A
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT
    + "%xx = arith.addf %x, %x : tensor<64x32xf16, #A>\ntt.store %pw, %xx : tensor<64x32x!tt.ptr<f16>, #A>\n",
    "converted": (
        "%x0 = tt.load %qa : tensor<64x32x!tt.ptr<f16>, #A>\n%x = arith.addf %x0, %x0 : tensor<64x32xf16, #A>\n"
    )
    + LOAD_B
    + "DOT(d, acc)"
    + NEXT,
    "chained": LOAD_A + LOAD_B + "DOT(s, acc)" + "DOT(d, s)" + NEXT,
    "result_read": LOAD_A + LOAD_B + "DOT(s, z)" + "%d = arith.addf %acc, %s : tensor<64x64xf32, #mma>\n" + NEXT,
    "sum_scaled": LOAD_A
    + LOAD_B
    + "DOT(s, z)"
    + "%f = arith.mulf %acc, %s : tensor<64x64xf32, #mma>\n"
    + "DOT(d, f)"
    + NEXT,
    "unpredictable": LOAD_A
    + LOAD_B
    + "DOT(d, acc)"
    + IS_ODD
    + """%na = scf.if %co -> (tensor<64x32x!tt.ptr<f16>, #A>) {
  %t = tt.addptr %qa, %sa : tensor<64x32x!tt.ptr<f16>, #A>, tensor<64x32xi32, #A>
  scf.yield %t : tensor<64x32x!tt.ptr<f16>, #A>
} else {
  scf.yield %qa : tensor<64x32x!tt.ptr<f16>, #A>
}
%nb = tt.addptr %qb, %sb : tensor<32x64x!tt.ptr<f16>, #B>, tensor<32x64xi32, #B>
""",
}


def program(name: str, *, sm: int = 80, attributes: str = "", lower: str = "%c0", step: str = "%c1") -> str:
    """The module whose loop has the body `name`."""
    body = BODIES[name]
    for result, total in (("d", "acc"), ("s", "acc"), ("s", "z"), ("d", "s"), ("d", "f")):
        body = body.replace(f"DOT({result}, {total})", DOT[sm].replace("NAME", result).replace("SUM", total))
    loop = LOOP.replace("LOWER", lower).replace("STEP", step).replace("BODY", body).replace("ATTRIBUTES", attributes)
    return HEAD + MMA[sm] + FUNCTION.replace("SM", str(sm)).replace("LOOP", loop)
