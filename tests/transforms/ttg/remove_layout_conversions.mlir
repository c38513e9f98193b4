// RUN: tilework opt %s -p tritongpu-remove-layout-conversions

// Layouts are taken over from loads and dots, and cheap values computed in the layout in which they are wanted.

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [4, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#e = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#ra = #ttg.slice<{dim = 1, parent = #a}>
#rb = #ttg.slice<{dim = 1, parent = #b}>
#da = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#db = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Ranges, splats and constants have any layout, and so has what is computed from them.
// CHECK-LABEL: tt.func public @ranges_splats_constants(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<3> : tensor<512xi32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.splat %n : i32 -> tensor<512xi32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.addi %[[B]], %[[C]] : tensor<512xi32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.muli %[[D]], %[[A]] : tensor<512xi32, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: tt.store %[[F]], %[[E]] : tensor<512x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @ranges_splats_constants(%p: !tt.ptr<i32>, %n: i32) {
  %c = arith.constant dense<3> : tensor<512xi32, #d>
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #d>
  %s = tt.splat %n : i32 -> tensor<512xi32, #d>
  %x = arith.addi %r, %s : tensor<512xi32, #d>
  %y = arith.muli %x, %c : tensor<512xi32, #d>
  %z = ttg.convert_layout %y : tensor<512xi32, #d> -> tensor<512xi32, #e>
  %q = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #e>
  tt.store %q, %z : tensor<512x!tt.ptr<i32>, #e>
  tt.return
}

// Addresses are computed in the layout of the load and the store.
// CHECK-LABEL: tt.func public @two_dimensions(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.expand_dims %[[A]] {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.expand_dims %[[B]] {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x64xi32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = tt.splat %n : i32 -> tensor<64x1xi32, #blocked1>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.muli %[[C]], %[[E]] : tensor<64x1xi32, #blocked1>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = tt.broadcast %[[F]] : tensor<64x1xi32, #blocked1> -> tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.broadcast %[[D]] : tensor<1x64xi32, #blocked1> -> tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[I:[^ :,)#]+]] = arith.addi %[[G]], %[[H]] : tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[J:[^ :,)#]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[K:[^ :,)#]+]] = tt.addptr %[[J]], %[[I]] : tensor<64x64x!tt.ptr<f32>, #blocked1>, tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[L:[^ :,)#]+]] = tt.load %[[K]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[M:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[N:[^ :,)#]+]] = tt.addptr %[[M]], %[[I]] : tensor<64x64x!tt.ptr<f32>, #blocked1>, tensor<64x64xi32, #blocked1>
// CHECK-NEXT: tt.store %[[N]], %[[L]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @two_dimensions(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #d>
  %i = ttg.convert_layout %r : tensor<64xi32, #d> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #c}>>
  %j = ttg.convert_layout %r : tensor<64xi32, #d> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #c}>>
  %y = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #c}>> -> tensor<64x1xi32, #c>
  %x = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #c}>> -> tensor<1x64xi32, #c>
  %n1 = tt.splat %n : i32 -> tensor<64x1xi32, #c>
  %m = arith.muli %y, %n1 : tensor<64x1xi32, #c>
  %my = tt.broadcast %m : tensor<64x1xi32, #c> -> tensor<64x64xi32, #c>
  %mx = tt.broadcast %x : tensor<1x64xi32, #c> -> tensor<64x64xi32, #c>
  %o = arith.addi %my, %mx : tensor<64x64xi32, #c>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #c>
  %pp = tt.addptr %ps, %o : tensor<64x64x!tt.ptr<f32>, #c>, tensor<64x64xi32, #c>
  %pa = ttg.convert_layout %pp : tensor<64x64x!tt.ptr<f32>, #c> -> tensor<64x64x!tt.ptr<f32>, #a>
  %v = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #c>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #c>
  %qq = tt.addptr %qs, %o : tensor<64x64x!tt.ptr<f32>, #c>, tensor<64x64xi32, #c>
  %qa = ttg.convert_layout %qq : tensor<64x64x!tt.ptr<f32>, #c> -> tensor<64x64x!tt.ptr<f32>, #a>
  %wa = ttg.convert_layout %w : tensor<64x64xf32, #c> -> tensor<64x64xf32, #a>
  tt.store %qa, %wa : tensor<64x64x!tt.ptr<f32>, #a>
  tt.return
}

// A load of many elements is not repeated: its conversion stays.
// CHECK-LABEL: tt.func public @an_expensive_load_stays(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @an_expensive_load_stays(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// A load of fewer elements than threads is.
// CHECK-LABEL: tt.func public @a_small_load_is_repeated(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.addptr %[[B]], %[[A]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>, tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.load %[[C]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: tt.store %[[E]], %[[D]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @a_small_load_is_repeated(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #d>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #d>
  %pp = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>, #d>, tensor<64xi32, #d>
  %v = tt.load %pp : tensor<64x!tt.ptr<f32>, #d>
  %w = ttg.convert_layout %v : tensor<64xf32, #d> -> tensor<64xf32, #ra>
  %qq = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ra>
  tt.store %qq, %w : tensor<64x!tt.ptr<f32>, #ra>
  tt.return
}

// What follows a dot is computed in the layout of its accumulator.
// CHECK-LABEL: tt.func public @an_accumulator_keeps_its_layout(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.dot %a, %b, %[[A]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = math.exp2 %[[B]] : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.mulf %[[C]], %[[A]] : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %s, %[[E]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @an_accumulator_keeps_its_layout(%a: tensor<64x32xf16, #da>, %b: tensor<32x64xf16, #db>, %s: tensor<64x64x!tt.ptr<f32>, #a>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #a>
  %c = ttg.convert_layout %z : tensor<64x64xf32, #a> -> tensor<64x64xf32, #mma>
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
  %e = ttg.convert_layout %d : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #a>
  %f = math.exp2 %e : tensor<64x64xf32, #a>
  %g = arith.mulf %f, %z : tensor<64x64xf32, #a>
  tt.store %s, %g : tensor<64x64x!tt.ptr<f32>, #a>
  tt.return
}

// The exponential moves to the layout of the reduction; one conversion remains, before the store.
// CHECK-LABEL: tt.func public @exp_of_a_reduction(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = "tt.reduce"(%[[A]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[C:[^ :,)#]+]]: f32, %[[D:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: tt.reduce.return %[[E]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked1>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = math.exp2 %[[B]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[F]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64xf32, #blocked3>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked3>
// CHECK-NEXT: tt.store %[[H]], %[[G]] : tensor<64x!tt.ptr<f32>, #blocked3>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @exp_of_a_reduction(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: !tt.ptr<f32>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ra>
  %t = ttg.convert_layout %s : tensor<64xf32, #ra> -> tensor<64xf32, #d>
  %e = math.exp2 %t : tensor<64xf32, #d>
  %qq = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #d>
  tt.store %qq, %e : tensor<64x!tt.ptr<f32>, #d>
  tt.return
}

// All results of a reduction have one layout.
// CHECK-LABEL: tt.func public @two_results(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = ttg.convert_layout %i : tensor<64x64xi32, #blocked4> -> tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]]:2 = "tt.reduce"(%[[B]], %[[A]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)#]+]]: f32, %[[E:[^ :,)#]+]]: i32, %[[F:[^ :,)#]+]]: f32, %[[G:[^ :,)#]+]]: i32):
// CHECK-NEXT: %[[H:[^ :,)#]+]] = arith.maxnumf %[[D]], %[[F]] : f32
// CHECK-NEXT: %[[I:[^ :,)#]+]] = arith.minsi %[[E]], %[[G]] : i32
// CHECK-NEXT: tt.reduce.return %[[H]], %[[I]] : f32, i32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked1>, tensor<64x64xi32, #blocked1>) -> (tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>>, tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>)
// CHECK-NEXT: %[[J:[^ :,)#]+]] = ttg.convert_layout %[[C]]#1 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: %[[K:[^ :,)#]+]] = ttg.convert_layout %[[C]]#0 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: %[[L:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: %[[M:[^ :,)#]+]] = tt.splat %r : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: tt.store %[[L]], %[[K]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: tt.store %[[M]], %[[J]] : tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #blocked4}>>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @two_results(%p: tensor<64x64x!tt.ptr<f32>, #a>, %i: tensor<64x64xi32, #c>, %q: !tt.ptr<f32>, %r: !tt.ptr<i32>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #c>
  %m:2 = "tt.reduce"(%w, %i) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %xi: i32, %y: f32, %yi: i32):
    %z = arith.maxnumf %x, %y : f32
    %zi = arith.minsi %xi, %yi : i32
    tt.reduce.return %z, %zi : f32, i32
  }) : (tensor<64x64xf32, #c>, tensor<64x64xi32, #c>) -> (tensor<64xf32, #ttg.slice<{dim = 1, parent = #c}>>, tensor<64xi32, #ttg.slice<{dim = 1, parent = #c}>>)
  %qq = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #c}>>
  %rr = tt.splat %r : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #c}>>
  tt.store %qq, %m#0 : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #c}>>
  tt.store %rr, %m#1 : tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #c}>>
  tt.return
}

// A reduction to a scalar takes any layout.
// CHECK-LABEL: tt.func public @to_a_scalar(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = "tt.reduce"(%[[A]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[C:[^ :,)#]+]]: f32, %[[D:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: tt.reduce.return %[[E]] : f32
// CHECK-NEXT: }) : (tensor<512xf32, #blocked>) -> f32
// CHECK-NEXT: tt.store %q, %[[B]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @to_a_scalar(%p: tensor<512x!tt.ptr<f32>, #e>, %q: !tt.ptr<f32>) {
  %v = tt.load %p : tensor<512x!tt.ptr<f32>, #e>
  %w = ttg.convert_layout %v : tensor<512xf32, #e> -> tensor<512xf32, #d>
  %s = "tt.reduce"(%w) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<512xf32, #d>) -> f32
  tt.store %q, %s : !tt.ptr<f32>
  tt.return
}

// So does an assertion.
// CHECK-LABEL: tt.func public @asserts(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0> : tensor<512xi32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.cmpi sge, %[[B]], %[[A]] : tensor<512xi32, #blocked>
// CHECK-NEXT: tt.assert %[[C]], "negative" : tensor<512xi1, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @asserts(%p: tensor<512x!tt.ptr<i32>, #e>) {
  %z = arith.constant dense<0> : tensor<512xi32, #d>
  %v = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
  %w = ttg.convert_layout %v : tensor<512xi32, #e> -> tensor<512xi32, #d>
  %c = arith.cmpi sge, %w, %z : tensor<512xi32, #d>
  tt.assert %c, "negative" : tensor<512xi1, #d>
  tt.return
}

// A scan needs a blocked layout: the accumulator is converted before it.
// CHECK-LABEL: tt.func public @scans_are_blocked(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.dot %a, %b, %[[A]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = "tt.scan"(%[[C]]) <{axis = 1 : i32, reverse = false}> ({
// CHECK-NEXT: ^bb0(%[[E:[^ :,)#]+]]: f32, %[[F:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[G:[^ :,)#]+]] = arith.addf %[[E]], %[[F]] : f32
// CHECK-NEXT: tt.scan.return %[[G]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked1>) -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %s, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @scans_are_blocked(%a: tensor<64x32xf16, #da>, %b: tensor<32x64xf16, #db>, %s: tensor<64x64x!tt.ptr<f32>, #a>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %d = tt.dot %a, %b, %z : tensor<64x32xf16, #da> * tensor<32x64xf16, #db> -> tensor<64x64xf32, #mma>
  %e = ttg.convert_layout %d : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #a>
  %f = "tt.scan"(%e) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    %w = arith.addf %x, %y : f32
    tt.scan.return %w : f32
  }) : (tensor<64x64xf32, #a>) -> tensor<64x64xf32, #a>
  tt.store %s, %f : tensor<64x64x!tt.ptr<f32>, #a>
  tt.return
}

// The result of a gather has the layout of the indices.
// CHECK-LABEL: tt.func public @gather_follows_its_indices(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.gather %s[%[[A]]] {axis = 0 : i32} : (tensor<512xf32, #blocked3>, tensor<512xi32, #blocked>) -> tensor<512xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<512x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @gather_follows_its_indices(%p: tensor<512x!tt.ptr<i32>, #e>, %s: tensor<512xf32, #d>, %q: tensor<512x!tt.ptr<f32>, #e>) {
  %i = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
  %j = ttg.convert_layout %i : tensor<512xi32, #e> -> tensor<512xi32, #d>
  %g = tt.gather %s[%j] {axis = 0 : i32} : (tensor<512xf32, #d>, tensor<512xi32, #d>) -> tensor<512xf32, #d>
  %h = ttg.convert_layout %g : tensor<512xf32, #d> -> tensor<512xf32, #e>
  tt.store %q, %h : tensor<512x!tt.ptr<f32>, #e>
  tt.return
}

// Unless the layout was chosen for the gather.
// CHECK-LABEL: tt.func public @an_efficient_gather_stays(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.gather %s[%i] {axis = 0 : i32, efficient_layout} : (tensor<512xf32, #blocked3>, tensor<512xi32, #blocked3>) -> tensor<512xf32, #blocked3>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<512xf32, #blocked3> -> tensor<512xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<512x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @an_efficient_gather_stays(%i: tensor<512xi32, #d>, %s: tensor<512xf32, #d>, %q: tensor<512x!tt.ptr<f32>, #e>) {
  %g = tt.gather %s[%i] {axis = 0 : i32, efficient_layout} : (tensor<512xf32, #d>, tensor<512xi32, #d>) -> tensor<512xf32, #d>
  %h = ttg.convert_layout %g : tensor<512xf32, #d> -> tensor<512xf32, #e>
  tt.store %q, %h : tensor<512x!tt.ptr<f32>, #e>
  tt.return
}

// A transposition has the transposed layout.
// CHECK-LABEL: tt.func public @transposition(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.trans %[[A]] {order = array<i32: 1, 0>} : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked5>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: tt.store %[[C]], %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @transposition(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: !tt.ptr<f32>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #c>
  %t = tt.trans %w {order = array<i32: 1, 0>} : tensor<64x64xf32, #c> -> tensor<64x64xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>>
  %u = ttg.convert_layout %t : tensor<64x64xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>> -> tensor<64x64xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>
  %qq = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>
  tt.store %qq, %u : tensor<64x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>
  tt.return
}

// A reshape that may reorder gives its result in any layout.
// CHECK-LABEL: tt.func public @a_reordering_reshape(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.reshape %[[A]] allow_reorder : tensor<64x64xf32, #blocked1> -> tensor<4096xf32, #blocked3>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.reshape %[[B]] allow_reorder : tensor<4096xf32, #blocked3> -> tensor<4096xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<4096x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @a_reordering_reshape(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<4096x!tt.ptr<f32>, #e>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %r = tt.reshape %v allow_reorder : tensor<64x64xf32, #a> -> tensor<4096xf32, #d>
  %s = ttg.convert_layout %r : tensor<4096xf32, #d> -> tensor<4096xf32, #e>
  tt.store %q, %s : tensor<4096x!tt.ptr<f32>, #e>
  tt.return
}

// Layouts follow joins and splits.
// CHECK-LABEL: tt.func public @join_and_split(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.join %[[A]], %[[A]] : tensor<512xf32, #blocked> -> tensor<512x2xf32, #blocked6>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.addf %[[B]], %[[B]] : tensor<512x2xf32, #blocked6>
// CHECK-NEXT: %[[D:[^ :,)#]+]], %[[E:[^ :,)#]+]] = tt.split %[[C]] : tensor<512x2xf32, #blocked6> -> tensor<512xf32, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.addf %[[D]], %[[E]] : tensor<512xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[F]] : tensor<512x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @join_and_split(%p: tensor<512x!tt.ptr<f32>, #e>, %q: tensor<512x!tt.ptr<f32>, #e>) {
  %v = tt.load %p : tensor<512x!tt.ptr<f32>, #e>
  %w = ttg.convert_layout %v : tensor<512xf32, #e> -> tensor<512xf32, #d>
  %j = tt.join %w, %w : tensor<512xf32, #d> -> tensor<512x2xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %k = arith.addf %j, %j : tensor<512x2xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %l, %r = tt.split %k : tensor<512x2xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<512xf32, #d>
  %s = arith.addf %l, %r : tensor<512xf32, #d>
  %t = ttg.convert_layout %s : tensor<512xf32, #d> -> tensor<512xf32, #e>
  tt.store %q, %t : tensor<512x!tt.ptr<f32>, #e>
  tt.return
}

// A conversion that dominates an equal one serves both.
// CHECK-LABEL: tt.func public @one_conversion_for_two(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @one_conversion_for_two(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  %x = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %x : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// What is stored in its old layout too would be computed twice: that must be cheaper than a conversion.
// CHECK-LABEL: tt.func public @slow_work_is_not_repeated(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = math.exp2 %[[A]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = math.log2 %[[B]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = math.sin %[[C]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = math.cos %[[D]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = math.sqrt %[[E]] : tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %r, %[[F]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = ttg.convert_layout %[[F]] : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[G]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @slow_work_is_not_repeated(%p: !tt.ptr<f32>, %f: f32, %q: tensor<64x64x!tt.ptr<f32>, #b>, %r: tensor<64x64x!tt.ptr<f32>, #a>) {
  %s = tt.splat %f : f32 -> tensor<64x64xf32, #a>
  %e0 = math.exp2 %s : tensor<64x64xf32, #a>
  %e1 = math.log2 %e0 : tensor<64x64xf32, #a>
  %e2 = math.sin %e1 : tensor<64x64xf32, #a>
  %e3 = math.cos %e2 : tensor<64x64xf32, #a>
  %e4 = math.sqrt %e3 : tensor<64x64xf32, #a>
  tt.store %r, %e4 : tensor<64x64x!tt.ptr<f32>, #a>
  %w = ttg.convert_layout %e4 : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// What is not needed in its old layout is not computed twice.
// CHECK-LABEL: tt.func public @used_once_it_only_moves(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = math.exp2 %[[A]] : tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = math.log2 %[[B]] : tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = math.sin %[[C]] : tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = math.cos %[[D]] : tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = math.sqrt %[[E]] : tensor<64x64xf32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[F]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @used_once_it_only_moves(%f: f32, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %s = tt.splat %f : f32 -> tensor<64x64xf32, #a>
  %e0 = math.exp2 %s : tensor<64x64xf32, #a>
  %e1 = math.log2 %e0 : tensor<64x64xf32, #a>
  %e2 = math.sin %e1 : tensor<64x64xf32, #a>
  %e3 = math.cos %e2 : tensor<64x64xf32, #a>
  %e4 = math.sqrt %e3 : tensor<64x64xf32, #a>
  %w = ttg.convert_layout %e4 : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// A sum of floats in another order would be another sum.
// CHECK-LABEL: tt.func public @a_float_sum_is_not_repeated(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = "tt.reduce"(%[[A]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[C:[^ :,)#]+]]: f32, %[[D:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: tt.reduce.return %[[E]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked1>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: tt.store %r, %[[B]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: tt.store %q, %[[F]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @a_float_sum_is_not_repeated(%q: tensor<64x!tt.ptr<f32>, #rb>, %f: f32, %r: tensor<64x!tt.ptr<f32>, #ra>) {
  %v = tt.splat %f : f32 -> tensor<64x64xf32, #a>
  %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ra>
  tt.store %r, %s : tensor<64x!tt.ptr<f32>, #ra>
  %t = ttg.convert_layout %s : tensor<64xf32, #ra> -> tensor<64xf32, #rb>
  tt.store %q, %t : tensor<64x!tt.ptr<f32>, #rb>
  tt.return
}

// A maximum is the same in any order.
// CHECK-LABEL: tt.func public @a_maximum_is(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = "tt.reduce"(%[[A]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)#]+]]: f32, %[[E:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.maxnumf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked2>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = "tt.reduce"(%[[B]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[H:[^ :,)#]+]]: f32, %[[I:[^ :,)#]+]]: f32):
// CHECK-NEXT: %[[J:[^ :,)#]+]] = arith.maxnumf %[[H]], %[[I]] : f32
// CHECK-NEXT: tt.reduce.return %[[J]] : f32
// CHECK-NEXT: }) : (tensor<64x64xf32, #blocked1>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: tt.store %r, %[[G]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @a_maximum_is(%q: tensor<64x!tt.ptr<f32>, #rb>, %f: f32, %r: tensor<64x!tt.ptr<f32>, #ra>) {
  %v = tt.splat %f : f32 -> tensor<64x64xf32, #a>
  %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ra>
  tt.store %r, %s : tensor<64x!tt.ptr<f32>, #ra>
  %t = ttg.convert_layout %s : tensor<64xf32, #ra> -> tensor<64xf32, #rb>
  tt.store %q, %t : tensor<64x!tt.ptr<f32>, #rb>
  tt.return
}

// Nor is anything with an effect repeated.
// CHECK-LABEL: tt.func public @effects_are_not_repeated(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %f : f32 -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.elementwise_inline_asm "count $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %[[A]] : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = ttg.convert_layout %[[B]] : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<64x64x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @effects_are_not_repeated(%f: f32, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %s = tt.splat %f : f32 -> tensor<64x64xf32, #a>
  %v = tt.elementwise_inline_asm "count $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %s : tensor<64x64xf32, #a> -> tensor<64x64xf32, #a>
  %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}
}
