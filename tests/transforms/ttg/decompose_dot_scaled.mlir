// RUN: tilework opt %s --split-input-file -p 'tritongpu-accelerate-matmul'
// Both sides scaled; fp4 is unpacked along K; NaN for the scale 255.
// CHECK: #linear = #ttg.linear<{register = [[1, 0], [0, 1], [0, 2], [8, 0], [16, 0], [32, 0], [64, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 0]], warp = [[2, 0], [4, 0]], block = []}>
// CHECK: #linear1 = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [32, 0], [64, 0]], lane = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #linear2 = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [64, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32], [32, 0]], block = []}>
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @fp8_and_fp4(
// CHECK-NEXT: %cst = arith.constant dense<0x7FC0> : tensor<128x64xbf16, #linear>
// CHECK-NEXT: %cst_0 = arith.constant dense<-1> : tensor<4x64xi8, #blocked1>
// CHECK-NEXT: %cst_1 = arith.constant dense<64> : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %cst_2 = arith.constant dense<7> : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %cst_3 = arith.constant dense<0x7FC0> : tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %cst_4 = arith.constant dense<-1> : tensor<128x4xi8, #blocked>
// CHECK-NEXT: %cst_5 = arith.constant dense<64> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %cst_6 = arith.constant dense<7> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.fp_to_fp %a : tensor<128x128xf8E4M3FN, #blocked> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extui %sa : tensor<128x4xi8, #blocked> to tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.shli %[[V1]], %cst_6 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.maxui %[[V2]], %cst_5 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V4:[0-9]+]] = tt.bitcast %[[V3]] : tensor<128x4xi16, #blocked> -> tensor<128x4xbf16, #blocked>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %[[V4]] : tensor<128x4xbf16, #blocked> -> tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V6:[0-9]+]] = tt.expand_dims %[[V5]] {axis = 2 : i32} : tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<128x4x1xbf16, #blocked2>
// CHECK-NEXT: %[[V7:[0-9]+]] = tt.broadcast %[[V6]] : tensor<128x4x1xbf16, #blocked2> -> tensor<128x4x32xbf16, #blocked2>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.reshape %[[V7]] : tensor<128x4x32xbf16, #blocked2> -> tensor<128x128xbf16, #linear1>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<128x128xbf16, #linear1> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.mulf %[[V0]], %[[V9]] : tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.cmpi eq, %sa, %cst_4 : tensor<128x4xi8, #blocked>
// CHECK-NEXT: %[[V12:[0-9]+]] = ttg.convert_layout %[[V11]] : tensor<128x4xi1, #blocked> -> tensor<128x4xi1, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V13:[0-9]+]] = tt.expand_dims %[[V12]] {axis = 2 : i32} : tensor<128x4xi1, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<128x4x1xi1, #blocked2>
// CHECK-NEXT: %[[V14:[0-9]+]] = tt.broadcast %[[V13]] : tensor<128x4x1xi1, #blocked2> -> tensor<128x4x32xi1, #blocked2>
// CHECK-NEXT: %[[V15:[0-9]+]] = tt.reshape %[[V14]] : tensor<128x4x32xi1, #blocked2> -> tensor<128x128xi1, #linear1>
// CHECK-NEXT: %[[V16:[0-9]+]] = ttg.convert_layout %[[V15]] : tensor<128x128xi1, #linear1> -> tensor<128x128xi1, #blocked>
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.select %[[V16]], %cst_3, %[[V10]] : tensor<128x128xi1, #blocked>, tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V18:[0-9]+]] = ttg.convert_layout %[[V17]] : tensor<128x128xbf16, #blocked> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V19:[0-9]+]] = ttg.fp4_to_fp %b {axis = 0 : i32} : tensor<64x64xi8, #blocked> -> tensor<128x64xbf16, #linear>
// CHECK-NEXT: %[[V20:[0-9]+]] = tt.trans %sb {order = array<i32: 1, 0>} : tensor<64x4xi8, #blocked> -> tensor<4x64xi8, #blocked1>
// CHECK-NEXT: %[[V21:[0-9]+]] = arith.extui %[[V20]] : tensor<4x64xi8, #blocked1> to tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V22:[0-9]+]] = arith.shli %[[V21]], %cst_2 : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V23:[0-9]+]] = arith.maxui %[[V22]], %cst_1 : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V24:[0-9]+]] = tt.bitcast %[[V23]] : tensor<4x64xi16, #blocked1> -> tensor<4x64xbf16, #blocked1>
// CHECK-NEXT: %[[V25:[0-9]+]] = ttg.convert_layout %[[V24]] : tensor<4x64xbf16, #blocked1> -> tensor<4x64xbf16, #ttg.slice<{dim = 2, parent = #blocked3}>>
// CHECK-NEXT: %[[V26:[0-9]+]] = tt.expand_dims %[[V25]] {axis = 2 : i32} : tensor<4x64xbf16, #ttg.slice<{dim = 2, parent = #blocked3}>> -> tensor<4x64x1xbf16, #blocked3>
// CHECK-NEXT: %[[V27:[0-9]+]] = tt.broadcast %[[V26]] : tensor<4x64x1xbf16, #blocked3> -> tensor<4x64x32xbf16, #blocked3>
// CHECK-NEXT: %[[V28:[0-9]+]] = tt.trans %[[V27]] {order = array<i32: 0, 2, 1>} : tensor<4x64x32xbf16, #blocked3> -> tensor<4x32x64xbf16, #blocked4>
// CHECK-NEXT: %[[V29:[0-9]+]] = tt.reshape %[[V28]] : tensor<4x32x64xbf16, #blocked4> -> tensor<128x64xbf16, #linear2>
// CHECK-NEXT: %[[V30:[0-9]+]] = ttg.convert_layout %[[V29]] : tensor<128x64xbf16, #linear2> -> tensor<128x64xbf16, #linear>
// CHECK-NEXT: %[[V31:[0-9]+]] = arith.mulf %[[V19]], %[[V30]] : tensor<128x64xbf16, #linear>
// CHECK-NEXT: %[[V32:[0-9]+]] = arith.cmpi eq, %[[V20]], %cst_0 : tensor<4x64xi8, #blocked1>
// CHECK-NEXT: %[[V33:[0-9]+]] = ttg.convert_layout %[[V32]] : tensor<4x64xi1, #blocked1> -> tensor<4x64xi1, #ttg.slice<{dim = 2, parent = #blocked3}>>
// CHECK-NEXT: %[[V34:[0-9]+]] = tt.expand_dims %[[V33]] {axis = 2 : i32} : tensor<4x64xi1, #ttg.slice<{dim = 2, parent = #blocked3}>> -> tensor<4x64x1xi1, #blocked3>
// CHECK-NEXT: %[[V35:[0-9]+]] = tt.broadcast %[[V34]] : tensor<4x64x1xi1, #blocked3> -> tensor<4x64x32xi1, #blocked3>
// CHECK-NEXT: %[[V36:[0-9]+]] = tt.trans %[[V35]] {order = array<i32: 0, 2, 1>} : tensor<4x64x32xi1, #blocked3> -> tensor<4x32x64xi1, #blocked4>
// CHECK-NEXT: %[[V37:[0-9]+]] = tt.reshape %[[V36]] : tensor<4x32x64xi1, #blocked4> -> tensor<128x64xi1, #linear2>
// CHECK-NEXT: %[[V38:[0-9]+]] = ttg.convert_layout %[[V37]] : tensor<128x64xi1, #linear2> -> tensor<128x64xi1, #linear>
// CHECK-NEXT: %[[V39:[0-9]+]] = arith.select %[[V38]], %cst, %[[V31]] : tensor<128x64xi1, #linear>, tensor<128x64xbf16, #linear>
// CHECK-NEXT: %[[V40:[0-9]+]] = ttg.local_alloc %[[V39]] : (tensor<128x64xbf16, #linear>) -> !ttg.memdesc<128x64xbf16, #shared, #smem>
// CHECK-NEXT: %[[V41:[0-9]+]] = ttg.convert_layout %c : tensor<128x64xf32, #blocked> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V42:[0-9]+]] = ttg.convert_layout %[[V18]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V43:[0-9]+]] = ttng.warp_group_dot %[[V42]], %[[V40]], %[[V41]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<128x64xbf16, #shared, #smem> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V44:[0-9]+]] = ttg.convert_layout %[[V43]] : tensor<128x64xf32, #mma> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V44]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @fp8_and_fp4(%a: tensor<128x128xf8E4M3FN, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<64x64xi8, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {fastMath = false} : tensor<128x128xf8E4M3FN, #blocked>, tensor<128x4xi8, #blocked> * tensor<64x64xi8, #blocked>, tensor<64x4xi8, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}

// -----

// Only the left side is scaled.
// CHECK: #linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [32, 0], [64, 0]], lane = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @left_scale(
// CHECK-NEXT: %cst = arith.constant dense<0x7FC0> : tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %cst_0 = arith.constant dense<-1> : tensor<128x4xi8, #blocked>
// CHECK-NEXT: %cst_1 = arith.constant dense<64> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %cst_2 = arith.constant dense<7> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.fp_to_fp %a : tensor<128x128xf8E4M3FN, #blocked> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extui %sa : tensor<128x4xi8, #blocked> to tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.shli %[[V1]], %cst_2 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.maxui %[[V2]], %cst_1 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V4:[0-9]+]] = tt.bitcast %[[V3]] : tensor<128x4xi16, #blocked> -> tensor<128x4xbf16, #blocked>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %[[V4]] : tensor<128x4xbf16, #blocked> -> tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[V6:[0-9]+]] = tt.expand_dims %[[V5]] {axis = 2 : i32} : tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked1}>> -> tensor<128x4x1xbf16, #blocked1>
// CHECK-NEXT: %[[V7:[0-9]+]] = tt.broadcast %[[V6]] : tensor<128x4x1xbf16, #blocked1> -> tensor<128x4x32xbf16, #blocked1>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.reshape %[[V7]] : tensor<128x4x32xbf16, #blocked1> -> tensor<128x128xbf16, #linear>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<128x128xbf16, #linear> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.mulf %[[V0]], %[[V9]] : tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.cmpi eq, %sa, %cst_0 : tensor<128x4xi8, #blocked>
// CHECK-NEXT: %[[V12:[0-9]+]] = ttg.convert_layout %[[V11]] : tensor<128x4xi1, #blocked> -> tensor<128x4xi1, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[V13:[0-9]+]] = tt.expand_dims %[[V12]] {axis = 2 : i32} : tensor<128x4xi1, #ttg.slice<{dim = 2, parent = #blocked1}>> -> tensor<128x4x1xi1, #blocked1>
// CHECK-NEXT: %[[V14:[0-9]+]] = tt.broadcast %[[V13]] : tensor<128x4x1xi1, #blocked1> -> tensor<128x4x32xi1, #blocked1>
// CHECK-NEXT: %[[V15:[0-9]+]] = tt.reshape %[[V14]] : tensor<128x4x32xi1, #blocked1> -> tensor<128x128xi1, #linear>
// CHECK-NEXT: %[[V16:[0-9]+]] = ttg.convert_layout %[[V15]] : tensor<128x128xi1, #linear> -> tensor<128x128xi1, #blocked>
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.select %[[V16]], %cst, %[[V10]] : tensor<128x128xi1, #blocked>, tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V18:[0-9]+]] = ttg.convert_layout %[[V17]] : tensor<128x128xbf16, #blocked> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V19:[0-9]+]] = ttg.convert_layout %b : tensor<128x64xbf16, #blocked> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[V20:[0-9]+]] = ttg.convert_layout %c : tensor<128x64xf32, #blocked> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V21:[0-9]+]] = ttg.convert_layout %[[V18]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V22:[0-9]+]] = ttg.convert_layout %[[V19]] : tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V23:[0-9]+]] = tt.dot %[[V21]], %[[V22]], %[[V20]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V24:[0-9]+]] = ttg.convert_layout %[[V23]] : tensor<128x64xf32, #mma> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V24]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @left_scale(%a: tensor<128x128xf8E4M3FN, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<128x64xbf16, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a scale %sa, %b , %c lhs = e4m3 rhs = bf16 {fastMath = false} : tensor<128x128xf8E4M3FN, #blocked>, tensor<128x4xi8, #blocked> * tensor<128x64xbf16, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}

// -----

// Only the right side is scaled: the transposed product.
// CHECK: #linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [32, 0]], lane = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @right_scale(
// CHECK-NEXT: %cst = arith.constant dense<0x7FC0> : tensor<64x128xbf16, #blocked1>
// CHECK-NEXT: %cst_0 = arith.constant dense<-1> : tensor<64x4xi8, #blocked>
// CHECK-NEXT: %cst_1 = arith.constant dense<64> : tensor<64x4xi16, #blocked>
// CHECK-NEXT: %cst_2 = arith.constant dense<7> : tensor<64x4xi16, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.trans %a {order = array<i32: 1, 0>} : tensor<128x128xbf16, #blocked> -> tensor<128x128xbf16, #blocked1>
// CHECK-NEXT: %[[V1:[0-9]+]] = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x64xf8E4M3FN, #blocked> -> tensor<64x128xf8E4M3FN, #blocked1>
// CHECK-NEXT: %[[V2:[0-9]+]] = tt.trans %c {order = array<i32: 1, 0>} : tensor<128x64xf32, #blocked> -> tensor<64x128xf32, #blocked1>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.fp_to_fp %[[V1]] : tensor<64x128xf8E4M3FN, #blocked1> -> tensor<64x128xbf16, #blocked1>
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %sb : tensor<64x4xi8, #blocked> to tensor<64x4xi16, #blocked>
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.shli %[[V4]], %cst_2 : tensor<64x4xi16, #blocked>
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.maxui %[[V5]], %cst_1 : tensor<64x4xi16, #blocked>
// CHECK-NEXT: %[[V7:[0-9]+]] = tt.bitcast %[[V6]] : tensor<64x4xi16, #blocked> -> tensor<64x4xbf16, #blocked>
// CHECK-NEXT: %[[V8:[0-9]+]] = ttg.convert_layout %[[V7]] : tensor<64x4xbf16, #blocked> -> tensor<64x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V9:[0-9]+]] = tt.expand_dims %[[V8]] {axis = 2 : i32} : tensor<64x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<64x4x1xbf16, #blocked2>
// CHECK-NEXT: %[[V10:[0-9]+]] = tt.broadcast %[[V9]] : tensor<64x4x1xbf16, #blocked2> -> tensor<64x4x32xbf16, #blocked2>
// CHECK-NEXT: %[[V11:[0-9]+]] = tt.reshape %[[V10]] : tensor<64x4x32xbf16, #blocked2> -> tensor<64x128xbf16, #linear>
// CHECK-NEXT: %[[V12:[0-9]+]] = ttg.convert_layout %[[V11]] : tensor<64x128xbf16, #linear> -> tensor<64x128xbf16, #blocked1>
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.mulf %[[V3]], %[[V12]] : tensor<64x128xbf16, #blocked1>
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %sb, %cst_0 : tensor<64x4xi8, #blocked>
// CHECK-NEXT: %[[V15:[0-9]+]] = ttg.convert_layout %[[V14]] : tensor<64x4xi1, #blocked> -> tensor<64x4xi1, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V16:[0-9]+]] = tt.expand_dims %[[V15]] {axis = 2 : i32} : tensor<64x4xi1, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<64x4x1xi1, #blocked2>
// CHECK-NEXT: %[[V17:[0-9]+]] = tt.broadcast %[[V16]] : tensor<64x4x1xi1, #blocked2> -> tensor<64x4x32xi1, #blocked2>
// CHECK-NEXT: %[[V18:[0-9]+]] = tt.reshape %[[V17]] : tensor<64x4x32xi1, #blocked2> -> tensor<64x128xi1, #linear>
// CHECK-NEXT: %[[V19:[0-9]+]] = ttg.convert_layout %[[V18]] : tensor<64x128xi1, #linear> -> tensor<64x128xi1, #blocked1>
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.select %[[V19]], %cst, %[[V13]] : tensor<64x128xi1, #blocked1>, tensor<64x128xbf16, #blocked1>
// CHECK-NEXT: %[[V21:[0-9]+]] = ttg.convert_layout %[[V20]] : tensor<64x128xbf16, #blocked1> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>>
// CHECK-NEXT: %[[V22:[0-9]+]] = ttg.convert_layout %[[V0]] : tensor<128x128xbf16, #blocked1> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[V23:[0-9]+]] = ttg.convert_layout %[[V2]] : tensor<64x128xf32, #blocked1> -> tensor<64x128xf32, #mma>
// CHECK-NEXT: %[[V24:[0-9]+]] = ttg.convert_layout %[[V21]] : tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V25:[0-9]+]] = ttg.convert_layout %[[V22]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V26:[0-9]+]] = tt.dot %[[V24]], %[[V25]], %[[V23]] : tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<128x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x128xf32, #mma>
// CHECK-NEXT: %[[V27:[0-9]+]] = ttg.convert_layout %[[V26]] : tensor<64x128xf32, #mma> -> tensor<64x128xf32, #blocked1>
// CHECK-NEXT: %[[V28:[0-9]+]] = tt.trans %[[V27]] {order = array<i32: 1, 0>} : tensor<64x128xf32, #blocked1> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V28]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @right_scale(%a: tensor<128x128xbf16, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<128x64xf8E4M3FN, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a , %b scale %sb, %c lhs = bf16 rhs = e4m3 {fastMath = false} : tensor<128x128xbf16, #blocked> * tensor<128x64xf8E4M3FN, #blocked>, tensor<64x4xi8, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}

// -----

// In f16 if one side is; with fastMath no NaN.
// CHECK: #linear = #ttg.linear<{register = [[0, 1], [1, 0], [2, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[4, 0], [8, 0], [16, 0], [32, 0], [0, 0]], warp = [[0, 2], [0, 4]], block = []}>
// CHECK: #linear1 = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [32, 0]], lane = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @f16(
// CHECK-NEXT: %cst = arith.constant dense<4194304> : tensor<64x4xi32, #blocked>
// CHECK-NEXT: %cst_0 = arith.constant dense<23> : tensor<64x4xi32, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.trans %a {order = array<i32: 1, 0>} : tensor<128x128xf16, #blocked> -> tensor<128x128xf16, #blocked1>
// CHECK-NEXT: %[[V1:[0-9]+]] = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x64xi8, #blocked> -> tensor<64x64xi8, #blocked1>
// CHECK-NEXT: %[[V2:[0-9]+]] = tt.trans %c {order = array<i32: 1, 0>} : tensor<128x64xf32, #blocked> -> tensor<64x128xf32, #blocked1>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttg.fp4_to_fp %[[V1]] {axis = 1 : i32} : tensor<64x64xi8, #blocked1> -> tensor<64x128xf16, #linear>
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extf %[[V3]] : tensor<64x128xf16, #linear> to tensor<64x128xf32, #linear>
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %sb : tensor<64x4xi8, #blocked> to tensor<64x4xi32, #blocked>
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.shli %[[V5]], %cst_0 : tensor<64x4xi32, #blocked>
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.maxui %[[V6]], %cst : tensor<64x4xi32, #blocked>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.bitcast %[[V7]] : tensor<64x4xi32, #blocked> -> tensor<64x4xf32, #blocked>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<64x4xf32, #blocked> -> tensor<64x4xf32, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V10:[0-9]+]] = tt.expand_dims %[[V9]] {axis = 2 : i32} : tensor<64x4xf32, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<64x4x1xf32, #blocked2>
// CHECK-NEXT: %[[V11:[0-9]+]] = tt.broadcast %[[V10]] : tensor<64x4x1xf32, #blocked2> -> tensor<64x4x32xf32, #blocked2>
// CHECK-NEXT: %[[V12:[0-9]+]] = tt.reshape %[[V11]] : tensor<64x4x32xf32, #blocked2> -> tensor<64x128xf32, #linear1>
// CHECK-NEXT: %[[V13:[0-9]+]] = ttg.convert_layout %[[V12]] : tensor<64x128xf32, #linear1> -> tensor<64x128xf32, #linear>
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.mulf %[[V4]], %[[V13]] : tensor<64x128xf32, #linear>
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.truncf %[[V14]] : tensor<64x128xf32, #linear> to tensor<64x128xf16, #linear>
// CHECK-NEXT: %[[V16:[0-9]+]] = ttg.convert_layout %[[V15]] : tensor<64x128xf16, #linear> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>>
// CHECK-NEXT: %[[V17:[0-9]+]] = ttg.convert_layout %[[V0]] : tensor<128x128xf16, #blocked1> -> tensor<128x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[V18:[0-9]+]] = ttg.convert_layout %[[V2]] : tensor<64x128xf32, #blocked1> -> tensor<64x128xf32, #mma>
// CHECK-NEXT: %[[V19:[0-9]+]] = ttg.convert_layout %[[V16]] : tensor<64x128xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>
// CHECK-NEXT: %[[V20:[0-9]+]] = ttg.convert_layout %[[V17]] : tensor<128x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>> -> tensor<128x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>>
// CHECK-NEXT: %[[V21:[0-9]+]] = tt.dot %[[V19]], %[[V20]], %[[V18]] : tensor<64x128xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>> * tensor<128x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>> -> tensor<64x128xf32, #mma>
// CHECK-NEXT: %[[V22:[0-9]+]] = ttg.convert_layout %[[V21]] : tensor<64x128xf32, #mma> -> tensor<64x128xf32, #blocked1>
// CHECK-NEXT: %[[V23:[0-9]+]] = tt.trans %[[V22]] {order = array<i32: 1, 0>} : tensor<64x128xf32, #blocked1> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V23]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @f16(%a: tensor<128x128xf16, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<64x64xi8, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a , %b scale %sb, %c lhs = fp16 rhs = e2m1 {fastMath = true} : tensor<128x128xf16, #blocked> * tensor<64x64xi8, #blocked>, tensor<64x4xi8, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}

// -----

// fp4 packed along N.
// CHECK: #linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [32, 0], [64, 0]], lane = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #linear1 = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [64, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32], [32, 0]], block = []}>
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @packed_along_n(
// CHECK-NEXT: %cst = arith.constant dense<64> : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %cst_0 = arith.constant dense<7> : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %cst_1 = arith.constant dense<64> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %cst_2 = arith.constant dense<7> : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.fp_to_fp %a : tensor<128x128xf8E5M2, #blocked> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extui %sa : tensor<128x4xi8, #blocked> to tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.shli %[[V1]], %cst_2 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.maxui %[[V2]], %cst_1 : tensor<128x4xi16, #blocked>
// CHECK-NEXT: %[[V4:[0-9]+]] = tt.bitcast %[[V3]] : tensor<128x4xi16, #blocked> -> tensor<128x4xbf16, #blocked>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %[[V4]] : tensor<128x4xbf16, #blocked> -> tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[V6:[0-9]+]] = tt.expand_dims %[[V5]] {axis = 2 : i32} : tensor<128x4xbf16, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<128x4x1xbf16, #blocked2>
// CHECK-NEXT: %[[V7:[0-9]+]] = tt.broadcast %[[V6]] : tensor<128x4x1xbf16, #blocked2> -> tensor<128x4x32xbf16, #blocked2>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.reshape %[[V7]] : tensor<128x4x32xbf16, #blocked2> -> tensor<128x128xbf16, #linear>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<128x128xbf16, #linear> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.mulf %[[V0]], %[[V9]] : tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V11:[0-9]+]] = ttg.convert_layout %[[V10]] : tensor<128x128xbf16, #blocked> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V12:[0-9]+]] = ttg.fp4_to_fp %b {axis = 1 : i32} : tensor<128x32xi8, #blocked> -> tensor<128x64xbf16, #blocked3>
// CHECK-NEXT: %[[V13:[0-9]+]] = tt.trans %sb {order = array<i32: 1, 0>} : tensor<64x4xi8, #blocked> -> tensor<4x64xi8, #blocked1>
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.extui %[[V13]] : tensor<4x64xi8, #blocked1> to tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.shli %[[V14]], %cst_0 : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.maxui %[[V15]], %cst : tensor<4x64xi16, #blocked1>
// CHECK-NEXT: %[[V17:[0-9]+]] = tt.bitcast %[[V16]] : tensor<4x64xi16, #blocked1> -> tensor<4x64xbf16, #blocked1>
// CHECK-NEXT: %[[V18:[0-9]+]] = ttg.convert_layout %[[V17]] : tensor<4x64xbf16, #blocked1> -> tensor<4x64xbf16, #ttg.slice<{dim = 2, parent = #blocked4}>>
// CHECK-NEXT: %[[V19:[0-9]+]] = tt.expand_dims %[[V18]] {axis = 2 : i32} : tensor<4x64xbf16, #ttg.slice<{dim = 2, parent = #blocked4}>> -> tensor<4x64x1xbf16, #blocked4>
// CHECK-NEXT: %[[V20:[0-9]+]] = tt.broadcast %[[V19]] : tensor<4x64x1xbf16, #blocked4> -> tensor<4x64x32xbf16, #blocked4>
// CHECK-NEXT: %[[V21:[0-9]+]] = tt.trans %[[V20]] {order = array<i32: 0, 2, 1>} : tensor<4x64x32xbf16, #blocked4> -> tensor<4x32x64xbf16, #blocked5>
// CHECK-NEXT: %[[V22:[0-9]+]] = tt.reshape %[[V21]] : tensor<4x32x64xbf16, #blocked5> -> tensor<128x64xbf16, #linear1>
// CHECK-NEXT: %[[V23:[0-9]+]] = ttg.convert_layout %[[V22]] : tensor<128x64xbf16, #linear1> -> tensor<128x64xbf16, #blocked3>
// CHECK-NEXT: %[[V24:[0-9]+]] = arith.mulf %[[V12]], %[[V23]] : tensor<128x64xbf16, #blocked3>
// CHECK-NEXT: %[[V25:[0-9]+]] = ttg.convert_layout %[[V24]] : tensor<128x64xbf16, #blocked3> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[V26:[0-9]+]] = ttg.convert_layout %c : tensor<128x64xf32, #blocked> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V27:[0-9]+]] = ttg.convert_layout %[[V11]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>
// CHECK-NEXT: %[[V28:[0-9]+]] = ttg.convert_layout %[[V25]] : tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>>
// CHECK-NEXT: %[[V29:[0-9]+]] = tt.dot %[[V27]], %[[V28]], %[[V26]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>> * tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V30:[0-9]+]] = ttg.convert_layout %[[V29]] : tensor<128x64xf32, #mma> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V30]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @packed_along_n(%a: tensor<128x128xf8E5M2, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<128x32xi8, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e5m2 rhs = e2m1 {fastMath = true, rhs_k_pack = false} : tensor<128x128xf8E5M2, #blocked>, tensor<128x4xi8, #blocked> * tensor<128x32xi8, #blocked>, tensor<64x4xi8, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}

// -----

// No scale at all.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @no_scale(
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.fp_to_fp %a : tensor<128x128xf8E5M2, #blocked> -> tensor<128x128xbf16, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %[[V0]] : tensor<128x128xbf16, #blocked> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = tt.fp_to_fp %b : tensor<128x64xf8E4M3FN, #blocked> -> tensor<128x64xbf16, #blocked>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttg.convert_layout %[[V2]] : tensor<128x64xbf16, #blocked> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %c : tensor<128x64xf32, #blocked> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %[[V1]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V7:[0-9]+]] = tt.dot %[[V5]], %[[V6]], %[[V4]] : tensor<128x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<128x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[V8:[0-9]+]] = ttg.convert_layout %[[V7]] : tensor<128x64xf32, #mma> -> tensor<128x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V8]] : tensor<128x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_scale(%a: tensor<128x128xf8E5M2, #blocked>, %sa: tensor<128x4xi8, #blocked>, %b: tensor<128x64xf8E4M3FN, #blocked>, %sb: tensor<64x4xi8, #blocked>, %c: tensor<128x64xf32, #blocked>) -> tensor<128x64xf32, #blocked> {
  %d = tt.dot_scaled %a , %b , %c lhs = e5m2 rhs = e4m3 {fastMath = false} : tensor<128x128xf8E5M2, #blocked> * tensor<128x64xf8E4M3FN, #blocked> -> tensor<128x64xf32, #blocked>
  tt.return %d : tensor<128x64xf32, #blocked>
}
}
