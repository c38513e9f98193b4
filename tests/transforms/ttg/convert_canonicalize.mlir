// RUN: tilework opt %s -p 'canonicalize'

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#b4 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK-NEXT: #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// CHECK-NEXT: #smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// From an accumulator to a dot operand nothing is folded.
// CHECK-LABEL: @splat_mma_dot(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<64x64xf16, #mma>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %x : f16 -> tensor<64x64xf16, #mma>
// CHECK-NEXT: %[[C:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: tt.return %[[C]], %[[D]] : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
tt.func public @splat_mma_dot(%x: f16) -> (tensor<64x64xf16, #dot>, tensor<64x64xf16, #dot>) {
  %s = tt.splat %x : f16 -> tensor<64x64xf16, #mma>
  %c = arith.constant dense<1.0> : tensor<64x64xf16, #mma>
  %0 = ttg.convert_layout %s : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #dot>
  %1 = ttg.convert_layout %c : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #dot>
  tt.return %0, %1 : tensor<64x64xf16, #dot>, tensor<64x64xf16, #dot>
}

// Two conversions are one, unless the second is that one; back to the same type, none.
// CHECK-LABEL: @cvt_cvt(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.convert_layout %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #mma>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: tt.return %[[B]], %[[C]], %x : tensor<64x64xf16, #blocked1>, tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<64x64xf16, #blocked>
tt.func public @cvt_cvt(%x: tensor<64x64xf16, #b2>) -> (tensor<64x64xf16, #b2b>, tensor<64x64xf16, #dot>, tensor<64x64xf16, #b2>) {
  %0 = ttg.convert_layout %x : tensor<64x64xf16, #b2> -> tensor<64x64xf16, #mma>
  %1 = ttg.convert_layout %0 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #b2b>
  %2 = ttg.convert_layout %0 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #dot>
  %3 = ttg.convert_layout %0 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #b2>
  tt.return %1, %2, %3 : tensor<64x64xf16, #b2b>, tensor<64x64xf16, #dot>, tensor<64x64xf16, #b2>
}

// Splats, ranges and splat constants are made in the layout that is wanted; other constants are not.
// CHECK-LABEL: @rng(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<7> : tensor<64xi32, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant dense<[7, 8]> : tensor<2xi32, #blocked3>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %p : i32 -> tensor<64xi32, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<2xi32, #blocked3> -> tensor<2xi32, #blocked2>
// CHECK-NEXT: tt.return %[[C]], %[[A]], %[[D]], %[[E]] : tensor<64xi32, #blocked2>, tensor<64xi32, #blocked2>, tensor<64xi32, #blocked2>, tensor<2xi32, #blocked2>
tt.func public @rng(%p: i32) -> (tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>, tensor<2xi32, #blocked1>) {
  %s = tt.splat %p : i32 -> tensor<64xi32, #blocked>
  %c = arith.constant dense<7> : tensor<64xi32, #blocked>
  %d = arith.constant dense<[7, 8]> : tensor<2xi32, #blocked>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
  %0 = ttg.convert_layout %s : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  %1 = ttg.convert_layout %c : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  %2 = ttg.convert_layout %r : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  %3 = ttg.convert_layout %d : tensor<2xi32, #blocked> -> tensor<2xi32, #blocked1>
  tt.return %0, %1, %2, %3 : tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>, tensor<2xi32, #blocked1>
}

// A reordered view is a view of what it views; a layout that was chosen (efficient_layout) stays.
// CHECK-LABEL: @reshape(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %x allow_reorder : tensor<64x64xf16, #blocked1> -> tensor<4096xf16, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.reshape %x allow_reorder : tensor<64x64xf16, #blocked1> -> tensor<4096xf16, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.reshape %x allow_reorder efficient_layout : tensor<64x64xf16, #blocked1> -> tensor<4096xf16, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.reshape %x allow_reorder efficient_layout : tensor<64x64xf16, #blocked1> -> tensor<4096xf16, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<4096xf16, #blocked2> -> tensor<4096xf16, #blocked3>
// CHECK-NEXT: tt.return %[[A]], %[[B]], %[[C]], %[[E]] : tensor<4096xf16, #blocked2>, tensor<4096xf16, #blocked2>, tensor<4096xf16, #blocked2>, tensor<4096xf16, #blocked3>
tt.func public @reshape(%x: tensor<64x64xf16, #b2b>) -> (tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked>) {
  %0 = tt.reshape %x allow_reorder : tensor<64x64xf16, #b2b> -> tensor<4096xf16, #blocked>
  %1 = ttg.convert_layout %0 : tensor<4096xf16, #blocked> -> tensor<4096xf16, #blocked1>
  %2 = ttg.convert_layout %x : tensor<64x64xf16, #b2b> -> tensor<64x64xf16, #b2>
  %3 = tt.reshape %2 allow_reorder : tensor<64x64xf16, #b2> -> tensor<4096xf16, #blocked1>
  %4 = tt.reshape %2 allow_reorder efficient_layout : tensor<64x64xf16, #b2> -> tensor<4096xf16, #blocked1>
  %5 = tt.reshape %x allow_reorder efficient_layout : tensor<64x64xf16, #b2b> -> tensor<4096xf16, #blocked1>
  %6 = ttg.convert_layout %5 : tensor<4096xf16, #blocked1> -> tensor<4096xf16, #blocked>
  tt.return %1, %3, %4, %6 : tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked1>, tensor<4096xf16, #blocked>
}

// The integers are counted in their own layout, the counts made in the one that is wanted.
// CHECK-LABEL: @hist(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.convert_layout %m : tensor<64xi1, #blocked2> -> tensor<64xi1, #blocked3>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.histogram %x, %[[A]] : tensor<64xi32, #blocked3> -> tensor<64xi32, #blocked3>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.histogram %x, %[[A]] : tensor<64xi32, #blocked3> -> tensor<64xi32, #blocked2>
// CHECK-NEXT: tt.return %[[C]], %[[B]] : tensor<64xi32, #blocked2>, tensor<64xi32, #blocked3>
tt.func public @hist(%x: tensor<64xi32, #blocked>, %m: tensor<64xi1, #blocked1>) -> (tensor<64xi32, #blocked1>, tensor<64xi32, #blocked>) {
  %c = ttg.convert_layout %x : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  %h = tt.histogram %c, %m : tensor<64xi32, #blocked1> -> tensor<64xi32, #blocked>
  %0 = ttg.convert_layout %h : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  tt.return %0, %h : tensor<64xi32, #blocked1>, tensor<64xi32, #blocked>
}

// A gather reads any layout of its source, unless its layout was chosen.
// CHECK-LABEL: @gath(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.convert_layout %x : tensor<64xi32, #blocked3> -> tensor<64xi32, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.gather %x[%m] {axis = 0 : i32} : (tensor<64xi32, #blocked3>, tensor<64xi32, #blocked2>) -> tensor<64xi32, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.gather %[[A]][%m] {axis = 0 : i32, efficient_layout} : (tensor<64xi32, #blocked2>, tensor<64xi32, #blocked2>) -> tensor<64xi32, #blocked2>
// CHECK-NEXT: tt.return %[[B]], %[[C]] : tensor<64xi32, #blocked2>, tensor<64xi32, #blocked2>
tt.func public @gath(%x: tensor<64xi32, #blocked>, %m: tensor<64xi32, #blocked1>) -> (tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>) {
  %c = ttg.convert_layout %x : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked1>
  %h = tt.gather %c[%m] {axis = 0 : i32} : (tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>) -> tensor<64xi32, #blocked1>
  %g = tt.gather %c[%m] {axis = 0 : i32, efficient_layout} : (tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>) -> tensor<64xi32, #blocked1>
  tt.return %h, %g : tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>
}

// Memory is written from any layout, and read again in the one that is wanted, where it was read. Memory filled from memory is the same memory.
// CHECK-LABEL: @mem(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: tt.return %[[A]], %[[B]] : tensor<64x64xf16, #blocked1>, !ttg.memdesc<64x64xf16, #shared, #smem>
tt.func public @mem(%x: tensor<64x64xf16, #b2>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) -> (tensor<64x64xf16, #b2b>, !ttg.memdesc<64x64xf16, #shared, #smem>) {
  %l = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #b2>
  %c = ttg.convert_layout %x : tensor<64x64xf16, #b2> -> tensor<64x64xf16, #b2b>
  ttg.local_store %c, %b : tensor<64x64xf16, #b2b> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc %c : (tensor<64x64xf16, #b2b>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
  %r = ttg.convert_layout %l : tensor<64x64xf16, #b2> -> tensor<64x64xf16, #b2b>
  %q = ttg.local_load %a : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #b2>
  %z = ttg.local_alloc %q : (tensor<64x64xf16, #b2>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
  tt.return %r, %z : tensor<64x64xf16, #b2b>, !ttg.memdesc<64x64xf16, #shared, #smem>
}

// A split of a converted tensor, only when the halves stay where they are.
// CHECK-LABEL: @split(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.convert_layout %x : tensor<128x2xf16, #blocked4> -> tensor<128x2xf16, #blocked5>
// CHECK-NEXT: %[[B:[^ :,)]+]], %[[C:[^ :,)]+]] = tt.split %[[A]] : tensor<128x2xf16, #blocked5> -> tensor<128xf16, #blocked6>
// CHECK-NEXT: %[[D:[^ :,)]+]], %[[E:[^ :,)]+]] = tt.split %x : tensor<128x2xf16, #blocked4> -> tensor<128xf16, #blocked3>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<128xf16, #blocked6> -> tensor<128xf16, #blocked3>
// CHECK-NEXT: tt.return %[[F]], %[[E]] : tensor<128xf16, #blocked3>, tensor<128xf16, #blocked3>
tt.func public @split(%x: tensor<128x2xf16, #b3>) -> (tensor<128xf16, #blocked>, tensor<128xf16, #blocked>) {
  %c = ttg.convert_layout %x : tensor<128x2xf16, #b3> -> tensor<128x2xf16, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %a, %b = tt.split %c : tensor<128x2xf16, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<128xf16, #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %d = ttg.convert_layout %x : tensor<128x2xf16, #b3> -> tensor<128x2xf16, #b3>
  %e, %f = tt.split %d : tensor<128x2xf16, #b3> -> tensor<128xf16, #blocked>
  %g = ttg.convert_layout %a : tensor<128xf16, #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<128xf16, #blocked>
  tt.return %g, %f: tensor<128xf16, #blocked>, tensor<128xf16, #blocked>
}

// A conversion between two names of one layout goes.
// CHECK-LABEL: @trans(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x32xf16, #blocked1> -> tensor<32x32xf16, #blocked7>
// CHECK-NEXT: tt.return %[[A]] : tensor<32x32xf16, #blocked7>
tt.func public @trans(%x: tensor<32x32xf16, #b2b>) -> (tensor<32x32xf16, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>>) {
  %l = ttg.convert_layout %x : tensor<32x32xf16, #b2b> -> tensor<32x32xf16, #ttg.linear<{register=[[4,0],[8,0],[16,0]], lane=[[0,1],[0,2],[0,4],[0,8],[0,16]], warp=[[1,0],[2,0]], block=[]}>>
  %t = tt.trans %l {order = array<i32: 1, 0>} : tensor<32x32xf16, #ttg.linear<{register=[[4,0],[8,0],[16,0]], lane=[[0,1],[0,2],[0,4],[0,8],[0,16]], warp=[[1,0],[2,0]], block=[]}>> -> tensor<32x32xf16, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>>
  tt.return %t : tensor<32x32xf16, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>>
}

// A concatenation in the layout that is wanted, if that has room.
// CHECK-LABEL: @cat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.cat %x, %x : tensor<512xf16, #blocked3> -> tensor<1024xf16, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ub.poison : tensor<128xf16, #blocked3>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.cat %[[B]], %[[B]] : tensor<128xf16, #blocked3> -> tensor<256xf16, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<256xf16, #blocked2> -> tensor<256xf16, #blocked3>
// CHECK-NEXT: tt.return %[[A]], %[[D]] : tensor<1024xf16, #blocked2>, tensor<256xf16, #blocked3>
tt.func public @cat(%x: tensor<512xf16, #blocked>) -> (tensor<1024xf16, #blocked1>, tensor<256xf16, #blocked>) {
  %l = tt.cat %x, %x : tensor<512xf16, #blocked> -> tensor<1024xf16, #blocked>
  %c = ttg.convert_layout %l : tensor<1024xf16, #blocked> -> tensor<1024xf16, #blocked1>
  %y = ub.poison : tensor<128xf16, #blocked>
  %m = tt.cat %y, %y : tensor<128xf16, #blocked> -> tensor<256xf16, #blocked1>
  %d = ttg.convert_layout %m : tensor<256xf16, #blocked1> -> tensor<256xf16, #blocked>
  tt.return %c, %d : tensor<1024xf16, #blocked1>, tensor<256xf16, #blocked>
}

// A split of a converted tile is one of the tile, if its halves are laid out the same way.
// CHECK-LABEL: @split_alike(
// CHECK-NEXT: %[[A:[^ :,)]+]], %[[B:[^ :,)]+]] = tt.split %x : tensor<128x2xf16, #blocked8> -> tensor<128xf16, #blocked3>
// CHECK-NEXT: tt.return %[[A]], %[[B]] : tensor<128xf16, #blocked3>, tensor<128xf16, #blocked3>
tt.func public @split_alike(%x: tensor<128x2xf16, #b4>) -> (tensor<128xf16, #blocked>, tensor<128xf16, #blocked>) {
  %c = ttg.convert_layout %x : tensor<128x2xf16, #b4> -> tensor<128x2xf16, #b3>
  %l, %r = tt.split %c : tensor<128x2xf16, #b3> -> tensor<128xf16, #blocked>
  tt.return %l, %r : tensor<128xf16, #blocked>, tensor<128xf16, #blocked>
}

// Two transpositions of memory are one, or none.
// CHECK-LABEL: @memdesc_trans(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.local_alloc %x : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.local_load %[[A]] : !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<32x64xf16, #blocked>
// CHECK-NEXT: tt.return %[[B]] : tensor<32x64xf16, #blocked>
tt.func public @memdesc_trans(%x: tensor<32x64xf16, #b2>) -> tensor<32x64xf16, #b2> {
  %m = ttg.local_alloc %x : (tensor<32x64xf16, #b2>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
  %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<32x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, #shared1, #smem>
  %n = ttg.memdesc_trans %t {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared1, #smem> -> !ttg.memdesc<32x64xf16, #shared, #smem>
  %v = ttg.local_load %n : !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<32x64xf16, #b2>
  tt.return %v : tensor<32x64xf16, #b2>
}

// A part of a part is a part of the whole.
// CHECK-LABEL: @subslices(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.memdesc_subslice %m[16, 48] : !ttg.memdesc<32x64xf16, #shared, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem, 32x64>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.local_load %[[A]] :
tt.func public @subslices(%m: !ttg.memdesc<32x64xf16, #shared, #smem>) -> tensor<16x16xf16, #b2> {
  %s = ttg.memdesc_subslice %m[16, 32] : !ttg.memdesc<32x64xf16, #shared, #smem> -> !ttg.memdesc<16x32xf16, #shared, #smem, 32x64>
  %n = ttg.memdesc_subslice %s[0, 16] : !ttg.memdesc<16x32xf16, #shared, #smem, 32x64> -> !ttg.memdesc<16x16xf16, #shared, #smem, 32x64>
  %v = ttg.local_load %n : !ttg.memdesc<16x16xf16, #shared, #smem, 32x64> -> tensor<16x16xf16, #b2>
  tt.return %v : tensor<16x16xf16, #b2>
}
}
