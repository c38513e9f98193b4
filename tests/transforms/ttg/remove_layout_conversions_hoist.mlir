// RUN: tilework opt %s -p tritongpu-remove-layout-conversions

// Conversions that stay, moved to where they cost less.

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #linear = #ttg.linear<{register = [[0, 1], [0, 8], [0, 16], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [0, 0]], block = []}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#ra = #ttg.slice<{dim = 1, parent = #a}>
#da = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#db = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#h = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// 16 bits are converted instead of 32.
// CHECK-LABEL: tt.func public @over_an_extension(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.extf %[[B]] : tensor<64x64xf16, #blocked1> to tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.addf %[[C]], %s : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_an_extension(%p: tensor<64x64x!tt.ptr<f16>, #a>, %s: tensor<64x64xf32, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f16>, #a>
  %e = arith.extf %v : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %w = ttg.convert_layout %e : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  %x = arith.addf %w, %s : tensor<64x64xf32, #b>
  tt.store %q, %x : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// What follows the extension is computed in the new layout.
// CHECK-LABEL: tt.func public @over_the_ops_behind_it(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<i8>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xi8, #blocked> -> tensor<64x64xi8, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.extsi %[[B]] : tensor<64x64xi8, #blocked1> to tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.splat %n : i32 -> tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addi %[[C]], %[[D]] : tensor<64x64xi32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<64x64x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_the_ops_behind_it(%p: tensor<64x64x!tt.ptr<i8>, #a>, %n: i32, %q: tensor<64x64x!tt.ptr<i32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<i8>, #a>
  %e = arith.extsi %v : tensor<64x64xi8, #a> to tensor<64x64xi32, #a>
  %s = tt.splat %n : i32 -> tensor<64x64xi32, #a>
  %x = arith.addi %e, %s : tensor<64x64xi32, #a>
  %w = ttg.convert_layout %x : tensor<64x64xi32, #a> -> tensor<64x64xi32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<i32>, #b>
  tt.return
}

// `tt.fp_to_fp` to more bits is an extension.
// CHECK-LABEL: tt.func public @over_fp_to_fp(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f8E5M2>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf8E5M2, #blocked> -> tensor<64x64xf8E5M2, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.fp_to_fp %[[B]] : tensor<64x64xf8E5M2, #blocked1> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<64x64x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_fp_to_fp(%p: tensor<64x64x!tt.ptr<f8E5M2>, #a>, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f8E5M2>, #a>
  %e = tt.fp_to_fp %v : tensor<64x64xf8E5M2, #a> -> tensor<64x64xf16, #a>
  %w = ttg.convert_layout %e : tensor<64x64xf16, #a> -> tensor<64x64xf16, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}

// One column is converted instead of 64.
// CHECK-LABEL: tt.func public @over_a_broadcast(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = "tt.reduce"(%[[A]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[C:[^ :,)#]+]]: f32, %[[D:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: tt.reduce.return %[[E]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.expand_dims %[[B]] {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xf32, #blocked>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[F]] : tensor<64x1xf32, #blocked> -> tensor<64x1xf32, #blocked1>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.broadcast %[[G]] : tensor<64x1xf32, #blocked1> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[H]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_a_broadcast(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %m = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ra>
  %e = tt.expand_dims %m {axis = 1 : i32} : tensor<64xf32, #ra> -> tensor<64x1xf32, #a>
  %b = tt.broadcast %e : tensor<64x1xf32, #a> -> tensor<64x64xf32, #a>
  %w = ttg.convert_layout %b : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// There is less to convert behind a truncation.
// CHECK-LABEL: tt.func public @not_over_a_truncation(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.truncf %[[A]] : tensor<64x64xf32, #blocked> to tensor<64x64xf16, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<64x64x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_over_a_truncation(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %e = arith.truncf %v : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
  %w = ttg.convert_layout %e : tensor<64x64xf16, #a> -> tensor<64x64xf16, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}

// Two extensions would need two conversions.
// CHECK-LABEL: tt.func public @not_over_two_extensions(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.extf %[[A]] : tensor<64x64xf16, #blocked> to tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.extf %[[B]] : tensor<64x64xf16, #blocked> to tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[C]], %[[D]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = ttg.convert_layout %[[E]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[F]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_over_two_extensions(%p: tensor<64x64x!tt.ptr<f16>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f16>, #a>
  %u = tt.load %p : tensor<64x64x!tt.ptr<f16>, #a>
  %e = arith.extf %v : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %f = arith.extf %u : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %x = arith.addf %e, %f : tensor<64x64xf32, #a>
  %w = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// In a loop, the branch that needs it converts; the other one computes in the new layout.
// CHECK-LABEL: tt.func public @into_one_branch(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: scf.for %[[D:[^ :,)#]+]] = %[[A]] to %n step %[[B]]  : i32 {
// CHECK-NEXT: %[[E:[^ :,)#]+]] = scf.if %b -> (tensor<64x64xf32, #blocked1>) {
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[F]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: scf.yield %[[G]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[C]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @into_one_branch(%b: i1, %n: i32, %p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #a>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = scf.if %b -> (tensor<64x64xf32, #a>) {
      %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
      scf.yield %l : tensor<64x64xf32, #a>
    } else {
      scf.yield %z : tensor<64x64xf32, #a>
    }
    %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}

// Both branches would convert: behind them there is one conversion.
// CHECK-LABEL: tt.func public @not_into_both_branches(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: scf.for %[[C:[^ :,)#]+]] = %[[A]] to %n step %[[B]]  : i32 {
// CHECK-NEXT: %[[D:[^ :,)#]+]] = scf.if %b -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: %[[E:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %[[E]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %[[F]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[G]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_into_both_branches(%b: i1, %n: i32, %p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = scf.if %b -> (tensor<64x64xf32, #a>) {
      %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
      scf.yield %l : tensor<64x64xf32, #a>
    } else {
      %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
      scf.yield %l : tensor<64x64xf32, #a>
    }
    %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}

// Nor outside of a loop.
// CHECK-LABEL: tt.func public @not_into_one_branch_without_a_loop(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = scf.if %b -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %[[C]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[A]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_into_one_branch_without_a_loop(%b: i1, %p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #a>
  %v = scf.if %b -> (tensor<64x64xf32, #a>) {
    %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
    scf.yield %l : tensor<64x64xf32, #a>
  } else {
    scf.yield %z : tensor<64x64xf32, #a>
  }
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// The operand of a dot is converted where it is loaded; elementwise work follows in the layout of the dot.
// CHECK-LABEL: tt.func public @to_the_load_of_an_operand(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.constant dense<2.000000e+00> : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = scf.for %[[F:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[G:[^ :,)#]+]] = %[[C]]) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.load %p : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[I:[^ :,)#]+]] = ttg.convert_layout %[[H]] : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[J:[^ :,)#]+]] = arith.mulf %[[I]], %[[D]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[K:[^ :,)#]+]] = tt.elementwise_inline_asm "neg.f16x2 $0, $1;" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %[[J]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[L:[^ :,)#]+]] = tt.dot %[[K]], %b, %[[G]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: scf.yield %[[L]] : tensor<64x64xf32, #mma>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %s, %[[E]] : tensor<64x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @to_the_load_of_an_operand(%n: i32, %p: tensor<64x32x!tt.ptr<f16>, #a>, %b: tensor<32x64xf16, #db>, %s: tensor<64x64x!tt.ptr<f32>, #mma>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %k = arith.constant dense<2.0> : tensor<64x32xf16, #a>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<64x64xf32, #mma>) : i32 {
    %v = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
    %w = arith.mulf %v, %k : tensor<64x32xf16, #a>
    %x = tt.elementwise_inline_asm "neg.f16x2 $0, $1;" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %w : tensor<64x32xf16, #a> -> tensor<64x32xf16, #a>
    %a = ttg.convert_layout %x : tensor<64x32xf16, #a> -> tensor<64x32xf16, #da>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.store %s, %l : tensor<64x64x!tt.ptr<f32>, #mma>
  tt.return
}

// Over a transposition the layout at the load is a linear one.
// CHECK-LABEL: tt.func public @to_the_load_of_a_transposed_operand(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = scf.for %[[E:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[F:[^ :,)#]+]] = %[[C]]) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)#]+]] = tt.load %p : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = ttg.convert_layout %[[G]] : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #linear>
// CHECK-NEXT: %[[I:[^ :,)#]+]] = tt.trans %[[H]] {order = array<i32: 1, 0>} : tensor<64x32xf16, #linear> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[J:[^ :,)#]+]] = tt.dot %a, %[[I]], %[[F]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: scf.yield %[[J]] : tensor<64x64xf32, #mma>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %s, %[[D]] : tensor<64x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @to_the_load_of_a_transposed_operand(%n: i32, %a: tensor<64x32xf16, #da>, %p: tensor<64x32x!tt.ptr<f16>, #a>, %s: tensor<64x64x!tt.ptr<f32>, #mma>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<64x64xf32, #mma>) : i32 {
    %v = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
    %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<64x32xf16, #a> -> tensor<32x64xf16, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>
    %b = ttg.convert_layout %t : tensor<32x64xf16, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>> -> tensor<32x64xf16, #db>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.store %s, %l : tensor<64x64x!tt.ptr<f32>, #mma>
  tt.return
}

// A sum moves data between threads: its conversion stays behind it.
// CHECK-LABEL: tt.func public @not_over_a_reduction(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %p : tensor<64x32x64x!tt.ptr<f16>, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = "tt.reduce"(%[[B]]) <{axis = 2 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)#]+]]: f16, %[[E:[^ :,)#]+]]: f16):
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.addf %[[D]], %[[E]] : f16
// CHECK-NEXT: tt.reduce.return %[[F]] : f16
// CHECK-NEXT: }) : (tensor<64x32x64xf16, #blocked2>) -> tensor<64x32xf16, #ttg.slice<{dim = 2, parent = #blocked2}>>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<64x32xf16, #ttg.slice<{dim = 2, parent = #blocked2}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.dot %[[G]], %b, %[[A]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.store %s, %[[H]] : tensor<64x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_over_a_reduction(%n: i32, %p: tensor<64x32x64x!tt.ptr<f16>, #h>, %b: tensor<32x64xf16, #db>, %s: tensor<64x64x!tt.ptr<f32>, #mma>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %v = tt.load %p : tensor<64x32x64x!tt.ptr<f16>, #h>
  %m = "tt.reduce"(%v) <{axis = 2 : i32}> ({
  ^bb0(%x: f16, %y: f16):
    %w = arith.addf %x, %y : f16
    tt.reduce.return %w : f16
  }) : (tensor<64x32x64xf16, #h>) -> tensor<64x32xf16, #ttg.slice<{dim = 2, parent = #h}>>
  %a = ttg.convert_layout %m : tensor<64x32xf16, #ttg.slice<{dim = 2, parent = #h}>> -> tensor<64x32xf16, #da>
  %d = tt.dot %a, %b, %z : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
  tt.store %s, %d : tensor<64x64x!tt.ptr<f32>, #mma>
  tt.return
}

// The second dot takes an operand that the first has too: converting what was loaded is not hoisted.
// CHECK-LABEL: tt.func public @to_the_load_of_a_shared_operand(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %p : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.store %p, %[[B]] : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.dot %[[C]], %b, %[[A]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.dot %[[E]], %b, %[[D]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.store %s, %[[F]] : tensor<64x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @to_the_load_of_a_shared_operand(%p: tensor<64x32x!tt.ptr<f16>, #a>, %b: tensor<32x64xf16, #db>, %s: tensor<64x64x!tt.ptr<f32>, #mma>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %v = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
  tt.store %p, %v : tensor<64x32x!tt.ptr<f16>, #a>
  %w = ttg.convert_layout %v : tensor<64x32xf16, #a> -> tensor<64x32xf16, #da>
  %d = tt.dot %w, %b, %z : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
  %x = ttg.convert_layout %v : tensor<64x32xf16, #a> -> tensor<64x32xf16, #da>
  %e = tt.dot %x, %b, %d : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
  tt.store %s, %e : tensor<64x64x!tt.ptr<f32>, #mma>
  tt.return
}

// What is multiplied into an operand comes from a load of its own.
// CHECK-LABEL: tt.func public @to_the_loads_of_scales(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %q : tensor<128x!tt.ptr<f16>, #blocked3>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<128xf16, #blocked3> -> tensor<128xf16, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>}>>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.addf %[[C]], %[[C]] : tensor<128xf16, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>}>>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[B]], %[[B]] : tensor<128xf16, #blocked3>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<128x!tt.ptr<f16>, #blocked3>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.expand_dims %[[D]] {axis = 1 : i32} : tensor<128xf16, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>}>> -> tensor<128x1xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = tt.broadcast %[[F]] : tensor<128x1xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> -> tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.dot %[[G]], %b, %[[A]] : tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: %[[I:[^ :,)#]+]] = tt.splat %t : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.store %[[I]], %[[H]] : tensor<128x64x!tt.ptr<f32>, #mma>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @to_the_loads_of_scales(%q: tensor<128x!tt.ptr<f16>, #one>, %b: tensor<32x64xf16, #db>, %t: !tt.ptr<f32>) {
  %g = tt.load %q : tensor<128x!tt.ptr<f16>, #one>
  %h = arith.addf %g, %g : tensor<128xf16, #one>
  tt.store %q, %h : tensor<128x!tt.ptr<f16>, #one>
  %i = ttg.convert_layout %h : tensor<128xf16, #one> -> tensor<128xf16, #ttg.slice<{dim = 1, parent = #a}>>
  %j = tt.expand_dims %i {axis = 1 : i32} : tensor<128xf16, #ttg.slice<{dim = 1, parent = #a}>> -> tensor<128x1xf16, #a>
  %k = tt.broadcast %j : tensor<128x1xf16, #a> -> tensor<128x32xf16, #a>
  %w = ttg.convert_layout %k : tensor<128x32xf16, #a> -> tensor<128x32xf16, #da>
  %c = arith.constant dense<0.0> : tensor<128x64xf32, #mma>
  %d = tt.dot %w, %b, %c : tensor<128x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<128x64xf32, #mma>
  %r = tt.splat %t : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #mma>
  tt.store %r, %d : tensor<128x64x!tt.ptr<f32>, #mma>
  tt.return
}

// Values that others use too are computed twice: with a conversion of 32 bits an element, that costs more.
// CHECK-LABEL: tt.func public @over_an_extension_that_others_use(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.extf %[[A]] : tensor<64x64xf16, #blocked> to tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.addf %[[B]], %[[B]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %o, %[[C]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_an_extension_that_others_use(%p: tensor<64x64x!tt.ptr<f16>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %o: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f16>, #a>
  %e = arith.extf %v : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %x = arith.addf %e, %e : tensor<64x64xf32, #a>
  tt.store %o, %x : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// An element is converted for 64: two slow operations may be done twice for that.
// CHECK-LABEL: tt.func public @over_a_broadcast_that_others_use(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x1x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x1xf32, #blocked> -> tensor<64x1xf32, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.broadcast %[[B]] : tensor<64x1xf32, #blocked1> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.broadcast %[[A]] : tensor<64x1xf32, #blocked> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = math.exp %[[C]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = math.exp %[[D]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = math.exp %[[E]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = math.exp %[[F]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %o, %[[H]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.store %q, %[[G]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_a_broadcast_that_others_use(%p: tensor<64x1x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %o: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = tt.load %p : tensor<64x1x!tt.ptr<f32>, #a>
  %e = tt.broadcast %v : tensor<64x1xf32, #a> -> tensor<64x64xf32, #a>
  %x = math.exp %e : tensor<64x64xf32, #a>
  %y = math.exp %x : tensor<64x64xf32, #a>
  tt.store %o, %y : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %y : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// Four may not.
// CHECK-LABEL: tt.func public @over_a_broadcast_with_slow_operations(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x1x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.broadcast %[[A]] : tensor<64x1xf32, #blocked> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = math.exp %[[B]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = math.exp %[[C]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = math.exp %[[D]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = math.exp %[[E]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %o, %[[F]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[F]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[G]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @over_a_broadcast_with_slow_operations(%p: tensor<64x1x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %o: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = tt.load %p : tensor<64x1x!tt.ptr<f32>, #a>
  %e = tt.broadcast %v : tensor<64x1xf32, #a> -> tensor<64x64xf32, #a>
  %x = math.exp %e : tensor<64x64xf32, #a>
  %y = math.exp %x : tensor<64x64xf32, #a>
  %z = math.exp %y : tensor<64x64xf32, #a>
  %u = math.exp %z : tensor<64x64xf32, #a>
  tt.store %o, %u : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %u : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// What was converted for another use is computed from there.
// CHECK-LABEL: tt.func public @from_a_conversion_for_another_use(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = math.exp %[[A]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %o, %[[C]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %r, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @from_a_conversion_for_another_use(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %r: tensor<64x64x!tt.ptr<f32>, #b>, %o: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %c = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %c : tensor<64x64x!tt.ptr<f32>, #b>
  %y = math.exp %v : tensor<64x64xf32, #a>
  tt.store %o, %y : tensor<64x64x!tt.ptr<f32>, #a>
  %z = ttg.convert_layout %y : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %r, %z : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// Partitions return values in the layout that they have.
// CHECK-LABEL: tt.func public @of_partitions(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<1.000000e+00> : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4>}
// CHECK-NEXT: default {
// CHECK-NEXT: ttg.warp_yield %[[A]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: partition0() num_warps(1) {
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : () -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.addf %[[B]], %[[B]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @of_partitions(%q: tensor<64x64x!tt.ptr<f32>, #b>, %o: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4>}
  default {
    %k = arith.constant dense<1.0> : tensor<64x64xf32, #a>
    ttg.warp_yield %k : tensor<64x64xf32, #a>
  }
  partition0() num_warps(1) {
    ttg.warp_return
  } : () -> tensor<64x64xf32, #a>
  %y = arith.addf %v, %v : tensor<64x64xf32, #a>
  %z = ttg.convert_layout %y : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}
}
