// RUN: tilework opt %s -p tritongpu-prefetch

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#e0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#e1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // The first half is carried, the second loaded before the first dot; the last dot sinks to the end.
// CHECK-LABEL: @two_slices(
// CHECK-NEXT: %0 = ttg.memdesc_subslice %a0[0, 0] :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = ttg.memdesc_subslice %b0[0, 0] :
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: %4:5 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0, %arg13 = %1, %arg14 = %3) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>, tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>)  : i32 {
// CHECK-NEXT:   %5 = ttg.memdesc_subslice %a[0, 16] :
// CHECK-NEXT:   %6 = ttg.local_load %5 :
// CHECK-NEXT:   %7 = ttg.memdesc_subslice %b[16, 0] :
// CHECK-NEXT:   %8 = ttg.local_load %7 :
// CHECK-NEXT:   %9 = tt.dot %arg13, %arg14, %acc :
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   %10 = ttg.memdesc_subslice %na[0, 0] :
// CHECK-NEXT:   %11 = ttg.local_load %10 :
// CHECK-NEXT:   %12 = ttg.memdesc_subslice %nb[0, 0] :
// CHECK-NEXT:   %13 = ttg.local_load %12 :
// CHECK-NEXT:   %14 = tt.dot %6, %8, %9 :
// CHECK-NEXT:   scf.yield %14, %na, %nb, %11, %13
// CHECK:      tt.return %4#0 :
  tt.func public @two_slices(%a0: !ttg.memdesc<64x32xf16, #s, #smem, mutable>, %b0: !ttg.memdesc<32x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x32xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x32x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>) : i32 {
      %la = ttg.local_load %a : !ttg.memdesc<64x32xf16, #s, #smem, mutable> -> tensor<64x32xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<32x64xf16, #t, #smem, mutable> -> tensor<32x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x32xf16, #s, #smem, mutable> -> !ttg.memdesc<64x32xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x32x64xf16, #t, #smem, mutable> -> !ttg.memdesc<32x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // Casts go along; kWidth 4 makes slices of 32.
// CHECK-LABEL: @through_cast(
// CHECK-NEXT: %0 = ttg.memdesc_subslice %a0[0, 0] :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = arith.sitofp %1 :
// CHECK-NEXT: %3 = ttg.memdesc_subslice %b0[0, 0] :
// CHECK-NEXT: %4 = ttg.local_load %3 :
// CHECK-NEXT: %5:5 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0, %arg13 = %2, %arg14 = %4) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xi8, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>, tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>)  : i32 {
// CHECK-NEXT:   %6 = ttg.memdesc_subslice %a[0, 32] :
// CHECK-NEXT:   %7 = ttg.local_load %6 :
// CHECK-NEXT:   %8 = arith.sitofp %7 :
// CHECK-NEXT:   %9 = ttg.memdesc_subslice %b[32, 0] :
// CHECK-NEXT:   %10 = ttg.local_load %9 :
// CHECK-NEXT:   %11 = tt.dot %arg13, %arg14, %acc :
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   %12 = ttg.memdesc_subslice %na[0, 0] :
// CHECK-NEXT:   %13 = ttg.local_load %12 :
// CHECK-NEXT:   %14 = arith.sitofp %13 :
// CHECK-NEXT:   %15 = ttg.memdesc_subslice %nb[0, 0] :
// CHECK-NEXT:   %16 = ttg.local_load %15 :
// CHECK-NEXT:   %17 = tt.dot %8, %10, %11 :
// CHECK-NEXT:   scf.yield %17, %na, %nb, %14, %16
// CHECK:      tt.return %5#0 :
  tt.func public @through_cast(%a0: !ttg.memdesc<64x64xi8, #s, #smem, mutable>, %b0: !ttg.memdesc<64x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x64xi8, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x64x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xi8, #s, #smem, mutable>, !ttg.memdesc<64x64xf16, #t, #smem, mutable>) : i32 {
      %la0 = ttg.local_load %a : !ttg.memdesc<64x64xi8, #s, #smem, mutable> -> tensor<64x64xi8, #e0>
      %la = arith.sitofp %la0 : tensor<64x64xi8, #e0> to tensor<64x64xf16, #e0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<64x64xf16, #t, #smem, mutable> -> tensor<64x64xf16, #e1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x64xf16, #e0> * tensor<64x64xf16, #e1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x64xi8, #s, #smem, mutable> -> !ttg.memdesc<64x64xi8, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x64x64xf16, #t, #smem, mutable> -> !ttg.memdesc<64x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xi8, #s, #smem, mutable>, !ttg.memdesc<64x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // One slice is all of K.
// CHECK-LABEL: @one_slice(
// CHECK-NEXT: %0 = ttg.memdesc_subslice %a0[0, 0] :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = ttg.memdesc_subslice %b0[0, 0] :
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: %4:5 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0, %arg13 = %1, %arg14 = %3) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x16xf16, #shared, #smem, mutable>, !ttg.memdesc<16x64xf16, #shared1, #smem, mutable>, tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>)  : i32 {
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   %5 = ttg.memdesc_subslice %na[0, 0] :
// CHECK-NEXT:   %6 = ttg.local_load %5 :
// CHECK-NEXT:   %7 = ttg.memdesc_subslice %nb[0, 0] :
// CHECK-NEXT:   %8 = ttg.local_load %7 :
// CHECK-NEXT:   %9 = tt.dot %arg13, %arg14, %acc :
// CHECK-NEXT:   scf.yield %9, %na, %nb, %6, %8
// CHECK:      tt.return %4#0 :
  tt.func public @one_slice(%a0: !ttg.memdesc<64x16xf16, #s, #smem, mutable>, %b0: !ttg.memdesc<16x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x16xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x16x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x16xf16, #s, #smem, mutable>, !ttg.memdesc<16x64xf16, #t, #smem, mutable>) : i32 {
      %la = ttg.local_load %a : !ttg.memdesc<64x16xf16, #s, #smem, mutable> -> tensor<64x16xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<16x64xf16, #t, #smem, mutable> -> tensor<16x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x16xf16, #d0> * tensor<16x64xf16, #d1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x16xf16, #s, #smem, mutable> -> !ttg.memdesc<64x16xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x16x64xf16, #t, #smem, mutable> -> !ttg.memdesc<16x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x16xf16, #s, #smem, mutable>, !ttg.memdesc<16x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // Four slices; the last dot stops at its user.
// CHECK-LABEL: @used_in_body(
// CHECK-NEXT: %0 = ttg.memdesc_subslice %a0[0, 0] :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = ttg.memdesc_subslice %b0[0, 0] :
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: %4:5 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0, %arg13 = %1, %arg14 = %3) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>)  : i32 {
// CHECK-NEXT:   %5 = ttg.memdesc_subslice %a[0, 16] :
// CHECK-NEXT:   %6 = ttg.local_load %5 :
// CHECK-NEXT:   %7 = ttg.memdesc_subslice %b[16, 0] :
// CHECK-NEXT:   %8 = ttg.local_load %7 :
// CHECK-NEXT:   %9 = tt.dot %arg13, %arg14, %acc :
// CHECK-NEXT:   %10 = ttg.memdesc_subslice %a[0, 32] :
// CHECK-NEXT:   %11 = ttg.local_load %10 :
// CHECK-NEXT:   %12 = ttg.memdesc_subslice %b[32, 0] :
// CHECK-NEXT:   %13 = ttg.local_load %12 :
// CHECK-NEXT:   %14 = tt.dot %6, %8, %9 :
// CHECK-NEXT:   %15 = ttg.memdesc_subslice %a[0, 48] :
// CHECK-NEXT:   %16 = ttg.local_load %15 :
// CHECK-NEXT:   %17 = ttg.memdesc_subslice %b[48, 0] :
// CHECK-NEXT:   %18 = ttg.local_load %17 :
// CHECK-NEXT:   %19 = tt.dot %11, %13, %14 :
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   %20 = tt.dot %16, %18, %19 :
// CHECK-NEXT:   %e = arith.addf %20, %20 :
// CHECK-NEXT:   tt.store %p, %e :
// CHECK-NEXT:   %21 = ttg.memdesc_subslice %na[0, 0] :
// CHECK-NEXT:   %22 = ttg.local_load %21 :
// CHECK-NEXT:   %23 = ttg.memdesc_subslice %nb[0, 0] :
// CHECK-NEXT:   %24 = ttg.local_load %23 :
// CHECK-NEXT:   scf.yield %20, %na, %nb, %22, %24
// CHECK:      tt.return %4#0 :
  tt.func public @used_in_body(%a0: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %b0: !ttg.memdesc<64x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x64xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x64x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #s, #smem, mutable>, !ttg.memdesc<64x64xf16, #t, #smem, mutable>) : i32 {
      %la = ttg.local_load %a : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> tensor<64x64xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<64x64xf16, #t, #smem, mutable> -> tensor<64x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x64xf16, #d0> * tensor<64x64xf16, #d1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x64xf16, #s, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x64x64xf16, #t, #smem, mutable> -> !ttg.memdesc<64x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      %e = arith.addf %d, %d : tensor<64x64xf32, #mma>
      tt.store %p, %e : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #s, #smem, mutable>, !ttg.memdesc<64x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // ... or at a region.
// CHECK-LABEL: @above_region(
// CHECK-NEXT: %0 = ttg.memdesc_subslice %a0[0, 0] :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = ttg.memdesc_subslice %b0[0, 0] :
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: %4:5 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0, %arg14 = %1, %arg15 = %3) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>, tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>)  : i32 {
// CHECK-NEXT:   %5 = ttg.memdesc_subslice %a[0, 16] :
// CHECK-NEXT:   %6 = ttg.local_load %5 :
// CHECK-NEXT:   %7 = ttg.memdesc_subslice %b[16, 0] :
// CHECK-NEXT:   %8 = ttg.local_load %7 :
// CHECK-NEXT:   %9 = tt.dot %arg14, %arg15, %acc :
// CHECK-NEXT:   %10 = tt.dot %6, %8, %9 :
// CHECK-NEXT:   scf.if %cond {
// CHECK-NEXT:     tt.store %p, %c :
// CHECK:        %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   %11 = ttg.memdesc_subslice %na[0, 0] :
// CHECK-NEXT:   %12 = ttg.local_load %11 :
// CHECK-NEXT:   %13 = ttg.memdesc_subslice %nb[0, 0] :
// CHECK-NEXT:   %14 = ttg.local_load %13 :
// CHECK-NEXT:   scf.yield %10, %na, %nb, %12, %14
// CHECK:      tt.return %4#0 :
  tt.func public @above_region(%a0: !ttg.memdesc<64x32xf16, #s, #smem, mutable>, %b0: !ttg.memdesc<32x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x32xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x32x64xf16, #t, #smem, mutable>, %cond: i1, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>) : i32 {
      %la = ttg.local_load %a : !ttg.memdesc<64x32xf16, #s, #smem, mutable> -> tensor<64x32xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<32x64xf16, #t, #smem, mutable> -> tensor<32x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #mma>
      scf.if %cond {
        tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      }
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x32xf16, #s, #smem, mutable> -> !ttg.memdesc<64x32xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x32x64xf16, #t, #smem, mutable> -> !ttg.memdesc<32x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // The next memory is ready only behind the wait: nothing is loaded ahead.
// CHECK-LABEL: @wait_first(
// CHECK-NEXT: %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>)  : i32 {
// CHECK-NEXT:   %w = ttg.async_wait {num = 0 : i32}
// CHECK-NEXT:   %la = ttg.local_load %a :
// CHECK-NEXT:   %lb2 = ttg.local_load %b :
// CHECK-NEXT:   %d = tt.dot %la, %lb2, %acc :
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   scf.yield %d, %na, %nb
// CHECK:      tt.return %r#0 :
  tt.func public @wait_first(%a0: !ttg.memdesc<64x32xf16, #s, #smem, mutable>, %b0: !ttg.memdesc<32x64xf16, #t, #smem, mutable>, %abuf: !ttg.memdesc<2x64x32xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x32x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>) : i32 {
      %w = ttg.async_wait {num = 0 : i32}
      %la = ttg.local_load %a : !ttg.memdesc<64x32xf16, #s, #smem, mutable> -> tensor<64x32xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<32x64xf16, #t, #smem, mutable> -> tensor<32x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x32xf16, #s, #smem, mutable> -> !ttg.memdesc<64x32xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x32x64xf16, #t, #smem, mutable> -> !ttg.memdesc<32x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
  // Memory that does not change is not carried.
// CHECK-LABEL: @not_carried(
// CHECK-NEXT: %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>)  : i32 {
// CHECK-NEXT:   %la = ttg.local_load %a0 :
// CHECK-NEXT:   %lb2 = ttg.local_load %b :
// CHECK-NEXT:   %d = tt.dot %la, %lb2, %acc :
// CHECK-NEXT:   %na = ttg.memdesc_index %abuf[%i] :
// CHECK-NEXT:   %nb = ttg.memdesc_index %bbuf[%i] :
// CHECK-NEXT:   tt.store %p, %c :
// CHECK-NEXT:   scf.yield %d, %na, %nb
// CHECK:      tt.return %r#0 :
  tt.func public @not_carried(%b0: !ttg.memdesc<32x64xf16, #t, #smem, mutable>, %a0: !ttg.memdesc<64x32xf16, #s, #smem, mutable>, %abuf: !ttg.memdesc<2x64x32xf16, #s, #smem, mutable>, %bbuf: !ttg.memdesc<2x32x64xf16, #t, #smem, mutable>, %lb: i32, %ub: i32, %st: i32, %c: tensor<64x64xf32, #mma>, %p: tensor<64x64x!tt.ptr<f32>, #mma>) -> tensor<64x64xf32, #mma> {
    %r:3 = scf.for %i = %lb to %ub step %st iter_args(%acc = %c, %a = %a0, %b = %b0) -> (tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>) : i32 {
      %la = ttg.local_load %a0 : !ttg.memdesc<64x32xf16, #s, #smem, mutable> -> tensor<64x32xf16, #d0>
      %lb2 = ttg.local_load %b : !ttg.memdesc<32x64xf16, #t, #smem, mutable> -> tensor<32x64xf16, #d1>
      %d = tt.dot %la, %lb2, %acc : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #mma>
      %na = ttg.memdesc_index %abuf[%i] : !ttg.memdesc<2x64x32xf16, #s, #smem, mutable> -> !ttg.memdesc<64x32xf16, #s, #smem, mutable>
      %nb = ttg.memdesc_index %bbuf[%i] : !ttg.memdesc<2x32x64xf16, #t, #smem, mutable> -> !ttg.memdesc<32x64xf16, #t, #smem, mutable>
      tt.store %p, %c : tensor<64x64x!tt.ptr<f32>, #mma>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #s, #smem, mutable>, !ttg.memdesc<32x64xf16, #t, #smem, mutable>
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
}
