// RUN: tilework opt %s --split-input-file -p 'tritongpu-optimize-dot-operands'
// A transposed right operand is read transposed from shared memory.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-LABEL: tt.func @right_of_mma(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<128x64xf16, #shared, #smem> -> !ttg.memdesc<64x128xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<64x128xf16, #shared1, #smem> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %d = tt.dot %a, %[[V2]], %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @right_of_mma(%x: tensor<128x64xf16, #b>, %a: tensor<128x64xf16, #A>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #b> -> tensor<64x128xf16, #bT>
  %y = ttg.convert_layout %t : tensor<64x128xf16, #bT> -> tensor<64x128xf16, #B>
  %d = tt.dot %a, %y, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// A left one.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-LABEL: tt.func @left_of_mma(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %d = tt.dot %[[V2]], %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @left_of_mma(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  %d = tt.dot %y, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// The swizzle follows kWidth and the element.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [0, 1]}>
// CHECK-LABEL: tt.func @eight_bits(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<128x64xi8, #blocked>) -> !ttg.memdesc<128x64xi8, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<128x64xi8, #shared, #smem> -> !ttg.memdesc<64x128xi8, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<64x128xi8, #shared1, #smem> -> tensor<64x128xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %d = tt.dot %a, %[[V2]], %c : tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<64x128xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<128x128xi32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xi32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @eight_bits(%x: tensor<128x64xi8, #b>, %a: tensor<128x64xi8, #A>, %c: tensor<128x128xi32, #mma>) -> tensor<128x128xi32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xi8, #b> -> tensor<64x128xi8, #bT>
  %y = ttg.convert_layout %t : tensor<64x128xi8, #bT> -> tensor<64x128xi8, #B>
  %d = tt.dot %a, %y, %c : tensor<128x64xi8, #A> * tensor<64x128xi8, #B> -> tensor<128x128xi32, #mma>
  tt.return %d : tensor<128x128xi32, #mma>
}
}

// -----

// kWidth 4.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 16, perPhase = 1, maxPhase = 4, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 16, perPhase = 1, maxPhase = 4, order = [0, 1]}>
// CHECK-LABEL: tt.func @wide_k(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<128x64xf16, #shared, #smem> -> !ttg.memdesc<64x128xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<64x128xf16, #shared1, #smem> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %d = tt.dot %a, %[[V2]], %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @wide_k(%x: tensor<128x64xf16, #b>, %a: tensor<128x64xf16, #A>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #b> -> tensor<64x128xf16, #bT>
  %y = ttg.convert_layout %t : tensor<64x128xf16, #bT> -> tensor<64x128xf16, #B>
  %d = tt.dot %a, %y, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// The conversion in front of the transposition is not needed.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-LABEL: tt.func @behind_a_conversion(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %d = tt.dot %[[V2]], %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @behind_a_conversion(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %x2 = ttg.convert_layout %x : tensor<64x128xf16, #b> -> tensor<64x128xf16, #bT>
  %t = tt.trans %x2 {order = array<i32: 1, 0>} : tensor<64x128xf16, #bT> -> tensor<128x64xf16, #b>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #b> -> tensor<128x64xf16, #A>
  %d = tt.dot %y, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// The transposition stays for its other user.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-LABEL: tt.func @transposed_for_another(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #blocked> -> tensor<128x64xf16, #blocked1>
// CHECK-NEXT: %d = tt.dot %[[V2]], %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d, %t : tensor<128x128xf32, #mma>, tensor<128x64xf16, #blocked1>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @transposed_for_another(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #mma>) -> (tensor<128x128xf32, #mma>, tensor<128x64xf16, #bT>) {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  %d = tt.dot %y, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d, %t : tensor<128x128xf32, #mma>, tensor<128x64xf16, #bT>
}
}

// -----

// A dot without tensor cores.
// CHECK: #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
// CHECK-LABEL: tt.func @no_tensor_cores(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_load %[[V1]] : !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %d = tt.dot %[[V2]], %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x128xf32, #blocked>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #b}>
#B = #ttg.dot_op<{opIdx = 1, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_tensor_cores(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #b>) -> tensor<128x128xf32, #b> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  %d = tt.dot %y, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #b>
  tt.return %d : tensor<128x128xf32, #b>
}
}

// -----

// Must not fire: the operand has two users.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @two_dots(
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #blocked> -> tensor<128x64xf16, #blocked1>
// CHECK-NEXT: %y = ttg.convert_layout %t : tensor<128x64xf16, #blocked1> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %c2 = tt.dot %y, %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: %d = tt.dot %y, %b, %c2 : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @two_dots(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  %c2 = tt.dot %y, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  %d = tt.dot %y, %b, %c2 : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// Must not fire: no dot.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @no_dot(
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #blocked> -> tensor<128x64xf16, #blocked1>
// CHECK-NEXT: %y = ttg.convert_layout %t : tensor<128x64xf16, #blocked1> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: tt.return %y : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_dot(%x: tensor<64x128xf16, #b>) -> tensor<128x64xf16, #A> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  tt.return %y : tensor<128x64xf16, #A>
}
}

// -----

// Must not fire: something is computed in between.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @computed(
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #blocked> -> tensor<128x64xf16, #blocked1>
// CHECK-NEXT: %y = ttg.convert_layout %t : tensor<128x64xf16, #blocked1> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %z = arith.addf %y, %y : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %d = tt.dot %z, %b, %c : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<128x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#A = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#B = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @computed(%x: tensor<64x128xf16, #b>, %b: tensor<64x128xf16, #B>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x128xf16, #b> -> tensor<128x64xf16, #bT>
  %y = ttg.convert_layout %t : tensor<128x64xf16, #bT> -> tensor<128x64xf16, #A>
  %z = arith.addf %y, %y : tensor<128x64xf16, #A>
  %d = tt.dot %z, %b, %c : tensor<128x64xf16, #A> * tensor<64x128xf16, #B> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// The copy is made before it is transposed.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @right_of_wgmma(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %[[V1]], %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @right_of_wgmma(%x: tensor<64x64xf16, #b>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #bT>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %d = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// A left operand.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @left_of_wgmma(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %[[V1]], %a, %c : !ttg.memdesc<64x64xf16, #shared1, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @left_of_wgmma(%x: tensor<64x64xf16, #b>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #bT>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %d = ttng.warp_group_dot %m, %a, %c : !ttg.memdesc<64x64xf16, #sT, #smem> * !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// Memory with the other order.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @not_transposed_memory(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared1, #smem> -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %[[V1]], %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @not_transposed_memory(%x: tensor<64x64xf16, #b>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #bT>) -> !ttg.memdesc<64x64xf16, #s, #smem>
  %d = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// A narrower swizzle.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @rows_of_64_bytes(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<128x32xf16, #blocked>) -> !ttg.memdesc<128x32xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<128x32xf16, #shared, #smem> -> !ttg.memdesc<32x128xf16, #shared1, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %[[V1]], %c : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x128xf16, #shared1, #smem> -> tensor<64x128xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x128xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @rows_of_64_bytes(%x: tensor<128x32xf16, #b>, %a: !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem>, %c: tensor<64x128xf32, #mma3>) -> tensor<64x128xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x32xf16, #b> -> tensor<32x128xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<32x128xf16, #bT>) -> !ttg.memdesc<32x128xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>, #smem>
  %d = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem> * !ttg.memdesc<32x128xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>, #smem> -> tensor<64x128xf32, #mma3>
  tt.return %d : tensor<64x128xf32, #mma3>
}
}

// -----

// A conversion in between is not needed.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @converted(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_trans %[[V0]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %[[V1]], %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @converted(%x: tensor<64x64xf16, #b>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %t2 = ttg.convert_layout %t : tensor<64x64xf16, #bT> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %t2 : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %d = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// Must not fire: two users.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @wgmma_twice(
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: %m = ttg.local_alloc %t : (tensor<64x64xf16, #blocked1>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %c2 = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %m, %c2 : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @wgmma_twice(%x: tensor<64x64xf16, #b>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #bT>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %c2 = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf32, #mma3>
  %d = ttng.warp_group_dot %a, %m, %c2 : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// Must not fire: no dot.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @no_wgmma(
// CHECK-NEXT: %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: %m = ttg.local_alloc %t : (tensor<64x64xf16, #blocked1>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %d = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf16, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bT = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_wgmma(%x: tensor<64x64xf16, #b>) -> tensor<64x64xf16, #b> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bT>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #bT>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %d = ttg.local_load %m : !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf16, #b>
  tt.return %d : tensor<64x64xf16, #b>
}
}

// -----

// The copy is made before it is reshaped.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK-LABEL: tt.func @reshaped(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<1x64x64xf16, #blocked>) -> !ttg.memdesc<1x64x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_reshape %[[V0]] : !ttg.memdesc<1x64x64xf16, #shared1, #smem> -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %[[V1]], %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @reshaped(%x: tensor<1x64x64xf16, #b3>, %a: !ttg.memdesc<64x64xf16, #s, #smem>, %c: tensor<64x64xf32, #mma3>) -> tensor<64x64xf32, #mma3> {
  %t = tt.reshape %x : tensor<1x64x64xf16, #b3> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s, #smem>
  %d = ttng.warp_group_dot %a, %m, %c : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf32, #mma3>
  tt.return %d : tensor<64x64xf32, #mma3>
}
}

// -----

// To more dimensions.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @reshaped_up(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_reshape %[[V0]] : !ttg.memdesc<64x64xf16, #shared1, #smem> -> !ttg.memdesc<1x64x64xf16, #shared, #smem>
// CHECK-NEXT: tt.return %[[V1]] : !ttg.memdesc<1x64x64xf16, #shared, #smem>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @reshaped_up(%x: tensor<64x64xf16, #b>) -> !ttg.memdesc<1x64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>, #smem> {
  %t = tt.reshape %x : tensor<64x64xf16, #b> -> tensor<1x64x64xf16, #b3>
  %m = ttg.local_alloc %t : (tensor<1x64x64xf16, #b3>) -> !ttg.memdesc<1x64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>, #smem>
  tt.return %m : !ttg.memdesc<1x64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>, #smem>
}
}

// -----

// Memory that is written later.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK-LABEL: tt.func @reshaped_mutable(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %x : (tensor<1x64x64xf16, #blocked>) -> !ttg.memdesc<1x64x64xf16, #shared1, #smem, mutable>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.memdesc_reshape %[[V0]] : !ttg.memdesc<1x64x64xf16, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: tt.return %[[V1]] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @reshaped_mutable(%x: tensor<1x64x64xf16, #b3>) -> !ttg.memdesc<64x64xf16, #s, #smem, mutable> {
  %t = tt.reshape %x : tensor<1x64x64xf16, #b3> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  tt.return %m : !ttg.memdesc<64x64xf16, #s, #smem, mutable>
}
}

// -----

// Must not fire: rows of another length.
// CHECK: #linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @other_rows(
// CHECK-NEXT: %t0 = tt.reshape %x : tensor<32x128xf16, #blocked> -> tensor<64x64xf16, #linear>
// CHECK-NEXT: %m = ttg.local_alloc %t0 : (tensor<64x64xf16, #linear>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: tt.return %m : !ttg.memdesc<64x64xf16, #shared, #smem>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @other_rows(%x: tensor<32x128xf16, #b>) -> !ttg.memdesc<64x64xf16, #s, #smem> {
  %t0 = tt.reshape %x : tensor<32x128xf16, #b> -> tensor<64x64xf16, #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>>
  %m = ttg.local_alloc %t0 : (tensor<64x64xf16, #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>>) -> !ttg.memdesc<64x64xf16, #s, #smem>
  tt.return %m : !ttg.memdesc<64x64xf16, #s, #smem>
}
}

// -----

// Must not fire: the contiguous dimension changes.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @reshaped_columns(
// CHECK-NEXT: %t = tt.reshape %x : tensor<1x64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: %m = ttg.local_alloc %t : (tensor<64x64xf16, #blocked1>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: tt.return %m : !ttg.memdesc<64x64xf16, #shared, #smem>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @reshaped_columns(%x: tensor<1x64x64xf16, #b3>) -> !ttg.memdesc<64x64xf16, #sT, #smem> {
  %t = tt.reshape %x : tensor<1x64x64xf16, #b3> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %t : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  tt.return %m : !ttg.memdesc<64x64xf16, #sT, #smem>
}
}
