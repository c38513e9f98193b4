// RUN: tilework opt %s -p 'convert-triton-to-tritongpu{target=cuda:90 num-warps=4}'

// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [32, 1, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 16, 2], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked9 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked10 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked11 = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = [32, 1, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked12 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked13 = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = [1, 32, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked14 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>
// CHECK-NEXT: #blocked15 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked16 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked17 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked18 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked19 = #ttg.blocked<{sizePerThread = [1, 4, 4], threadsPerWarp = [1, 16, 2], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked20 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked21 = #ttg.blocked<{sizePerThread = [1, 1, 1, 1], threadsPerWarp = [1, 1, 32, 1], warpsPerCTA = [1, 1, 4, 1], order = [3, 2, 1, 0]}>
// CHECK-NEXT: #blocked22 = #ttg.blocked<{sizePerThread = [1, 1, 1, 1], threadsPerWarp = [1, 1, 8, 4], warpsPerCTA = [1, 1, 4, 1], order = [3, 2, 1, 0]}>
// CHECK-NEXT: #blocked23 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 32, 1], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked24 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module {

// Every op gets the layout of its own size, and conversions where they differ.
// CHECK-LABEL: @running(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked1> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.expand_dims %[[B]] {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>> -> tensor<64x1xi32, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64x1xi32, #blocked2> -> tensor<64x1xi32, #blocked3>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked1> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked4}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.expand_dims %[[E]] {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked4}>> -> tensor<1x64xi32, #blocked4>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[F]] : tensor<1x64xi32, #blocked4> -> tensor<1x64xi32, #blocked>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %s : i32 -> tensor<64x1xi32, #blocked3>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.muli %[[D]], %[[H]] : tensor<64x1xi32, #blocked3>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.broadcast %[[I]] : tensor<64x1xi32, #blocked3> -> tensor<64x64xi32, #blocked3>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[J]] : tensor<64x64xi32, #blocked3> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[L:[^ :,)]+]] = tt.broadcast %[[G]] : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[M:[^ :,)]+]] = arith.addi %[[K]], %[[L]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[N:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[O:[^ :,)]+]] = tt.addptr %[[N]], %[[M]] : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.load %[[O]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return %[[P]] : tensor<64x64xf32, #blocked>
tt.func public @running(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32) -> tensor<64x64xf32> {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %f = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %n = tt.splat %s : i32 -> tensor<64x1xi32>
  %m = arith.muli %e, %n : tensor<64x1xi32>
  %a = tt.broadcast %m : tensor<64x1xi32> -> tensor<64x64xi32>
  %b = tt.broadcast %f : tensor<1x64xi32> -> tensor<64x64xi32>
  %o = arith.addi %a, %b : tensor<64x64xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %t = tt.addptr %q, %o : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %v = tt.load %t : tensor<64x64x!tt.ptr<f32>>
  tt.return %v : tensor<64x64xf32>
}

// Scalars stay as they are.
// CHECK-LABEL: @scalars(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addf %x, %x : f32
// CHECK-NEXT: tt.store %p, %[[A]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
tt.func public @scalars(%p: !tt.ptr<f32>, %x: f32) {
  %y = arith.addf %x, %x : f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// Views: inferred layouts, converted to the default behind the op.
// CHECK-LABEL: @views(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf32, #blocked5> -> tensor<32x64xf32, #blocked10>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<32x64xf32, #blocked10> -> tensor<32x64xf32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.cat %y, %y : tensor<16x1x1xf16, #blocked6> -> tensor<32x1x1xf16, #blocked11>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<32x1x1xf16, #blocked11> -> tensor<32x1x1xf16, #blocked6>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %z : tensor<64x2xi32, #blocked7> -> tensor<64x2xi32, #blocked12>
// CHECK-NEXT: %[[F:[^ :,)]+]], %[[G:[^ :,)]+]] = tt.split %[[E]] : tensor<64x2xi32, #blocked12> -> tensor<64xi32, #blocked1>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.join %x, %x : tensor<64x32xf32, #blocked5> -> tensor<64x32x2xf32, #blocked13>
// CHECK-NEXT: %[[I:[^ :,)]+]] = ttg.convert_layout %[[H]] : tensor<64x32x2xf32, #blocked13> -> tensor<64x32x2xf32, #blocked8>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.reshape %x : tensor<64x32xf32, #blocked5> -> tensor<2048xf32, #blocked1>
// CHECK-NEXT: %[[K:[^ :,)]+]] = tt.reshape %x allow_reorder : tensor<64x32xf32, #blocked5> -> tensor<8x256xf32, #blocked9>
// CHECK-NEXT: %[[L:[^ :,)]+]] = arith.addi %[[F]], %[[G]] : tensor<64xi32, #blocked1>
// CHECK-NEXT: tt.return %[[B]], %[[D]], %[[G]], %[[L]], %[[I]], %[[J]], %[[K]] : tensor<32x64xf32, #blocked>, tensor<32x1x1xf16, #blocked6>, tensor<64xi32, #blocked1>, tensor<64xi32, #blocked1>, tensor<64x32x2xf32, #blocked8>, tensor<2048xf32, #blocked1>, tensor<8x256xf32, #blocked9>
tt.func public @views(%p: !tt.ptr<f32>, %x: tensor<64x32xf32>, %y: tensor<16x1x1xf16>, %z: tensor<64x2xi32>) -> (tensor<32x64xf32>, tensor<32x1x1xf16>, tensor<64xi32>, tensor<64xi32>, tensor<64x32x2xf32>, tensor<2048xf32>, tensor<8x256xf32>) {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %1 = tt.cat %y, %y : tensor<16x1x1xf16> -> tensor<32x1x1xf16>
  %a, %b = tt.split %z : tensor<64x2xi32> -> tensor<64xi32>
  %2 = tt.join %x, %x : tensor<64x32xf32> -> tensor<64x32x2xf32>
  %3 = tt.reshape %x : tensor<64x32xf32> -> tensor<2048xf32>
  %4 = tt.reshape %x allow_reorder : tensor<64x32xf32> -> tensor<8x256xf32>
  %5 = arith.addi %a, %b : tensor<64xi32>
  tt.return %0, %1, %b, %5, %2, %3, %4 : tensor<32x64xf32>, tensor<32x1x1xf16>, tensor<64xi32>, tensor<64xi32>, tensor<64x32x2xf32>, tensor<2048xf32>, tensor<8x256xf32>
}

// Loops and branches carry default layouts; reductions give slices.
// CHECK-LABEL: @flow(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = "tt.reduce"(%x) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)]+]]: f32, %[[E:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked5>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>> -> tensor<64xf32, #blocked1>
// CHECK-NEXT: %[[H:[^ :,)]+]]:2 = "tt.reduce"(%x, %x) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D]]: f32, %[[I:[^ :,)]+]]: f32, %[[E]]: f32, %[[J:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[F]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]], %[[I]] : f32, f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked5>, tensor<64x32xf32, #blocked5>) -> (tensor<32xf32, #ttg.slice<{dim = 0, parent = #blocked5}>>, tensor<32xf32, #ttg.slice<{dim = 0, parent = #blocked5}>>)
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[H]]#1 : tensor<32xf32, #ttg.slice<{dim = 0, parent = #blocked5}>> -> tensor<32xf32, #blocked1>
// CHECK-NEXT: %[[L:[^ :,)]+]] = scf.if %c -> (tensor<64xf32, #blocked1>) {
// CHECK-NEXT: scf.yield %[[G]] : tensor<64xf32, #blocked1>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[M:[^ :,)]+]] = ub.poison : tensor<64xf32, #blocked1>
// CHECK-NEXT: scf.yield %[[M]] : tensor<64xf32, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: %[[N:[^ :,)]+]]:2 = scf.while (%[[O:[^ :,)]+]] = %[[L]], %[[P:[^ :,)]+]] = %[[A]]) : (tensor<64xf32, #blocked1>, i32) -> (tensor<64xf32, #blocked1>, i32) {
// CHECK-NEXT: %[[Q:[^ :,)]+]] = arith.cmpi slt, %[[P]], %n : i32
// CHECK-NEXT: scf.condition(%[[Q]]) %[[O]], %[[P]] : tensor<64xf32, #blocked1>, i32
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[O]]: tensor<64xf32, #blocked1>, %[[P]]: i32):
// CHECK-NEXT: %[[R:[^ :,)]+]] = ttg.convert_layout %[[O]] : tensor<64xf32, #blocked1> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: %[[S:[^ :,)]+]] = tt.expand_dims %[[R]] {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked2}>> -> tensor<64x1xf32, #blocked2>
// CHECK-NEXT: %[[T:[^ :,)]+]] = ttg.convert_layout %[[S]] : tensor<64x1xf32, #blocked2> -> tensor<64x1xf32, #blocked3>
// CHECK-NEXT: %[[U:[^ :,)]+]] = tt.broadcast %[[T]] : tensor<64x1xf32, #blocked3> -> tensor<64x32xf32, #blocked3>
// CHECK-NEXT: %[[V:[^ :,)]+]] = ttg.convert_layout %[[U]] : tensor<64x32xf32, #blocked3> -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: %[[W:[^ :,)]+]] = arith.addf %[[V]], %x : tensor<64x32xf32, #blocked5>
// CHECK-NEXT: %[[X:[^ :,)]+]] = "tt.reduce"(%[[W]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked5>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>>
// CHECK-NEXT: %[[Y:[^ :,)]+]] = ttg.convert_layout %[[X]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>> -> tensor<64xf32, #blocked1>
// CHECK-NEXT: %[[Z:[^ :,)]+]] = arith.addi %[[P]], %[[B]] : i32
// CHECK-NEXT: scf.yield %[[Y]], %[[Z]] : tensor<64xf32, #blocked1>, i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[AA:[^ :,)]+]] = "tt.reduce"(%[[N]]#0) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<64xf32, #blocked1>) -> f32
// CHECK-NEXT: tt.store %p, %[[AA]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return %[[N]]#0, %[[K]] : tensor<64xf32, #blocked1>, tensor<32xf32, #blocked1>
tt.func public @flow(%p: !tt.ptr<f32>, %x: tensor<64x32xf32>, %n: i32, %c: i1) -> (tensor<64xf32>, tensor<32xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %q: f32):
    %s = arith.addf %l, %q : f32
    tt.reduce.return %s : f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  %t:2 = "tt.reduce"(%x, %x) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %l2: f32, %q: f32, %q2: f32):
    %s = arith.addf %l, %q : f32
    tt.reduce.return %s, %l2 : f32, f32
  }) : (tensor<64x32xf32>, tensor<64x32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
  %i = scf.if %c -> tensor<64xf32> {
    scf.yield %r : tensor<64xf32>
  } else {
    %po = ub.poison : tensor<64xf32>
    scf.yield %po : tensor<64xf32>
  }
  %w:2 = scf.while (%a = %i, %k = %c0) : (tensor<64xf32>, i32) -> (tensor<64xf32>, i32) {
    %d = arith.cmpi slt, %k, %n : i32
    scf.condition(%d) %a, %k : tensor<64xf32>, i32
  } do {
  ^bb0(%a: tensor<64xf32>, %k: i32):
    %e = tt.expand_dims %a {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %f = tt.broadcast %e : tensor<64x1xf32> -> tensor<64x32xf32>
    %g = arith.addf %f, %x : tensor<64x32xf32>
    %h = "tt.reduce"(%g) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %q: f32):
      %s = arith.addf %l, %q : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %k1 = arith.addi %k, %c1 : i32
    scf.yield %h, %k1 : tensor<64xf32>, i32
  }
  %u = "tt.reduce"(%w#0) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %q: f32):
      %s = arith.addf %l, %q : f32
      tt.reduce.return %s : f32
    }) : (tensor<64xf32>) -> f32
  tt.store %p, %u : !tt.ptr<f32>
  tt.return %w#0, %t#1 : tensor<64xf32>, tensor<32xf32>
}

// CHECK-LABEL: @callee(
// CHECK-NEXT: %[[A:[^ :,)]+]] = "tt.reduce"(%x) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[B:[^ :,)]+]]: f32, %[[C:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addf %[[B]], %[[C]] : f32
// CHECK-NEXT: tt.reduce.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked5>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked5}>> -> tensor<64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[E]] : tensor<64xf32, #blocked1>
tt.func private @callee(%x: tensor<64x32xf32>) -> tensor<64xf32> attributes {noinline = true} {
  %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %q: f32):
    %s = arith.addf %l, %q : f32
    tt.reduce.return %s : f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return %r : tensor<64xf32>
}

// Blocks, calls and functions.
// CHECK-LABEL: @caller(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf32, #blocked5> -> tensor<32x64xf32, #blocked10>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<32x64xf32, #blocked10> -> tensor<32x64xf32, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.trans %[[B]] {order = array<i32: 1, 0>} : tensor<32x64xf32, #blocked> -> tensor<64x32xf32, #blocked14>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64x32xf32, #blocked14> -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: cf.cond_br %c, ^bb1(%[[D]] : tensor<64x32xf32, #blocked5>), ^bb2
// CHECK-NEXT: ^bb1(%[[E:[^ :,)]+]]: tensor<64x32xf32, #blocked5>):
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.call @callee(%[[E]]) : (tensor<64x32xf32, #blocked5>) -> tensor<64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[F]] : tensor<64xf32, #blocked1>
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %[[G:[^ :,)]+]] = ub.poison : tensor<64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[G]] : tensor<64xf32, #blocked1>
tt.func public @caller(%x: tensor<64x32xf32>, %c: i1) -> tensor<64xf32> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %u = tt.trans %t {order = array<i32: 1, 0>} : tensor<32x64xf32> -> tensor<64x32xf32>
  cf.cond_br %c, ^bb1(%u : tensor<64x32xf32>), ^bb2
^bb1(%v: tensor<64x32xf32>):
  %r = tt.call @callee(%v) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return %r : tensor<64xf32>
^bb2:
  %o = ub.poison : tensor<64xf32>
  tt.return %o : tensor<64xf32>
}

// A dot and a batch of them.
// CHECK-LABEL: @dots(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x16xf16, #blocked15> -> tensor<16x16xf16, #blocked18>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<16x16xf16, #blocked18> -> tensor<16x16xf16, #blocked15>
// CHECK-NEXT: %[[C:[^ :,)]+]] = ttg.convert_layout %a : tensor<16x16xf16, #blocked15> -> tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked15}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<16x16xf16, #blocked15> -> tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked15}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %c : tensor<16x16xf32, #blocked15> -> tensor<16x16xf32, #blocked15>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.dot %[[C]], %[[D]], %[[E]] : tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked15}>> * tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked15}>> -> tensor<16x16xf32, #blocked15>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %d : tensor<4x64x32xf16, #blocked16> -> tensor<4x64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked19}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %e : tensor<4x32x8xf16, #blocked17> -> tensor<4x32x8xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked19}>>
// CHECK-NEXT: %[[I:[^ :,)]+]] = ttg.convert_layout %f : tensor<4x64x8xf32, #blocked17> -> tensor<4x64x8xf32, #blocked19>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.dot %[[G]], %[[H]], %[[I]] : tensor<4x64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked19}>> * tensor<4x32x8xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked19}>> -> tensor<4x64x8xf32, #blocked19>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[J]] : tensor<4x64x8xf32, #blocked19> -> tensor<4x64x8xf32, #blocked17>
// CHECK-NEXT: tt.return %[[F]], %[[K]] : tensor<16x16xf32, #blocked15>, tensor<4x64x8xf32, #blocked17>
tt.func public @dots(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>, %d: tensor<4x64x32xf16>, %e: tensor<4x32x8xf16>, %f: tensor<4x64x8xf32>) -> (tensor<16x16xf32>, tensor<4x64x8xf32>) {
  %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x16xf16> -> tensor<16x16xf16>
  %0 = tt.dot %a, %t, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = tt.dot %d, %e, %f : tensor<4x64x32xf16> * tensor<4x32x8xf16> -> tensor<4x64x8xf32>
  tt.return %0, %1 : tensor<16x16xf32>, tensor<4x64x8xf32>
}

// Ops that take the default layout.
// CHECK-LABEL: @misc(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.gather %a[%i] {axis = 1 : i32} : (tensor<64x32xf32, #blocked5>, tensor<64x32xi32, #blocked5>) -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.histogram %h : tensor<512xi32, #blocked1> -> tensor<16xi32, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)]+]] = "tt.scan"(%a) <{axis = 0 : i32, reverse = false}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)]+]]: f32, %[[E:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.scan.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked5>) -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.atomic_rmw fadd, acq_rel, gpu, %p, %a, %m : (tensor<64x32x!tt.ptr<f32>, #blocked5>, tensor<64x32xf32, #blocked5>, tensor<64x32xi1, #blocked5>) -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a : tensor<64x32xf32, #blocked5> -> tensor<64x32xf32, #blocked5>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[G]] : tensor<64x32xf32, #blocked5>
// CHECK-NEXT: tt.assert %m, "no" : tensor<64x32xi1, #blocked5>
// CHECK-NEXT: tt.return %[[A]], %[[B]], %[[C]], %[[G]], %[[H]] : tensor<64x32xf32, #blocked5>, tensor<16xi32, #blocked1>, tensor<64x32xf32, #blocked5>, tensor<64x32xf32, #blocked5>, tensor<64x32xf32, #blocked5>
tt.func public @misc(%a: tensor<64x32xf32>, %i: tensor<64x32xi32>, %p: tensor<64x32x!tt.ptr<f32>>, %m: tensor<64x32xi1>, %h: tensor<512xi32>) -> (tensor<64x32xf32>, tensor<16xi32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) {
  %g = tt.gather %a[%i] {axis = 1 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> tensor<64x32xf32>
  %hh = tt.histogram %h : tensor<512xi32> -> tensor<16xi32>
  %s = "tt.scan"(%a) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%l: f32, %q: f32):
    %s = arith.addf %l, %q : f32
    tt.scan.return %s : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %at = tt.atomic_rmw fadd, acq_rel, gpu, %p, %a, %m : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xf32>, tensor<64x32xi1>) -> tensor<64x32xf32>
  %as = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a : tensor<64x32xf32> -> tensor<64x32xf32>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %at : tensor<64x32xf32>
  tt.assert %m, "no" : tensor<64x32xi1>
  tt.return %g, %hh, %s, %at, %as : tensor<64x32xf32>, tensor<16xi32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>
}

// Descriptors; rows to gather have a layout of their own.
// CHECK-LABEL: @desc(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.convert_layout %x : tensor<32xi32, #blocked1> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked20}>>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.descriptor_gather %d[%[[A]], %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked20}>>, i32) -> tensor<32x64xf16, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = ttg.convert_layout %x : tensor<32xi32, #blocked1> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked20}>>
// CHECK-NEXT: tt.descriptor_scatter %d[%[[C]], %y], %[[B]] : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked20}>>, i32, tensor<32x64xf16, #blocked>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.descriptor_load %e[%y, %y] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.descriptor_store %e[%y, %y], %[[D]] : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.return
tt.func public @desc(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<32xi32>, %y: i32, %e: !tt.tensordesc<tensor<64x64xf16>>) {
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  tt.descriptor_scatter %d[%x, %y], %0 : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xf16>
  %1 = tt.descriptor_load %e[%y, %y] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %e[%y, %y], %1 : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.return
}

// Pointers to blocks; tensors of one element.
// CHECK-LABEL: @bp(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i64
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.make_tensor_ptr %p, [%n, %n], [%n, %[[A]]], [%i, %i] {order = array<i32: 1, 0>} : <tensor<64x32xf16, #blocked5>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.advance %[[B]], [%i, %i] : <tensor<64x32xf16, #blocked5>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.load %[[C]] : !tt.ptr<tensor<64x32xf16, #blocked5>>
// CHECK-NEXT: tt.store %[[C]], %[[D]] : !tt.ptr<tensor<64x32xf16, #blocked5>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ub.poison : tensor<1xf16, #blocked1>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.unsplat %[[E]] : tensor<1xf16, #blocked1>
// CHECK-NEXT: tt.return %[[E]] : tensor<1xf16, #blocked1>
tt.func public @bp(%p: !tt.ptr<f16>, %n: i64, %i: i32) -> tensor<1xf16> {
  %c1 = arith.constant 1 : i64
  %0 = tt.make_tensor_ptr %p, [%n, %n], [%n, %c1], [%i, %i] {order = array<i32: 1, 0>} : <tensor<64x32xf16>>
  %1 = tt.advance %0, [%i, %i] : <tensor<64x32xf16>>
  %2 = tt.load %1 : !tt.ptr<tensor<64x32xf16>>
  tt.store %1, %2 : !tt.ptr<tensor<64x32xf16>>
  %3 = ub.poison : tensor<1xf16>
  %u = tt.unsplat %3 : tensor<1xf16>
  tt.return %3 : tensor<1xf16>
}

// Rank 4, and regions that are copied.
// CHECK-LABEL: @mapel(
// CHECK-NEXT: %[[A:[^ :,)]+]] = "tt.map_elementwise"(%a, %a) <{pack = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[B:[^ :,)]+]]: f32, %[[C:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addf %[[B]], %[[C]] : f32
// CHECK-NEXT: tt.map_elementwise.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<128xf32, #blocked1>, tensor<128xf32, #blocked1>) -> tensor<128xf32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.broadcast %b : tensor<1x1x128x1xf32, #blocked21> -> tensor<2x1x128x4xf32, #blocked21>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[E]] : tensor<2x1x128x4xf32, #blocked21> -> tensor<2x1x128x4xf32, #blocked22>
// CHECK-NEXT: %[[G:[^ :,)]+]] = "tt.reduce"(%b) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[H:[^ :,)]+]]: f32, %[[I:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[D]] = arith.addf %[[H]], %[[I]] : f32
// CHECK-NEXT: tt.reduce.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<1x1x128x1xf32, #blocked21>) -> tensor<1x128x1xf32, #ttg.slice<{dim = 1, parent = #blocked21}>>
// CHECK-NEXT: %[[J:[^ :,)]+]] = ttg.convert_layout %[[G]] : tensor<1x128x1xf32, #ttg.slice<{dim = 1, parent = #blocked21}>> -> tensor<1x128x1xf32, #blocked23>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %c : tensor<4xi1, #blocked1> -> tensor<4xi1, #ttg.slice<{dim = 0, parent = #blocked4}>>
// CHECK-NEXT: %[[L:[^ :,)]+]] = tt.expand_dims %[[K]] {axis = 0 : i32} : tensor<4xi1, #ttg.slice<{dim = 0, parent = #blocked4}>> -> tensor<1x4xi1, #blocked4>
// CHECK-NEXT: %[[M:[^ :,)]+]] = ttg.convert_layout %[[L]] : tensor<1x4xi1, #blocked4> -> tensor<1x4xi1, #blocked24>
// CHECK-NEXT: tt.return %[[A]], %[[F]], %[[J]], %[[M]] : tensor<128xf32, #blocked1>, tensor<2x1x128x4xf32, #blocked22>, tensor<1x128x1xf32, #blocked23>, tensor<1x4xi1, #blocked24>
tt.func public @mapel(%a: tensor<128xf32>, %b: tensor<1x1x128x1xf32>, %c: tensor<4xi1>) -> (tensor<128xf32>, tensor<2x1x128x4xf32>, tensor<1x128x1xf32>, tensor<1x4xi1>) {
  %0 = "tt.map_elementwise"(%a, %a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tt.map_elementwise.return %s : f32
  }) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %1 = tt.broadcast %b : tensor<1x1x128x1xf32> -> tensor<2x1x128x4xf32>
  %2 = "tt.reduce"(%b) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %q: f32):
    %s = arith.addf %l, %q : f32
    tt.reduce.return %s : f32
  }) : (tensor<1x1x128x1xf32>) -> tensor<1x128x1xf32>
  %3 = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi1> -> tensor<1x4xi1>
  tt.return %0, %1, %2, %3 : tensor<128xf32>, tensor<2x1x128x4xf32>, tensor<1x128x1xf32>, tensor<1x4xi1>
}

// Layouts of scaled dots are chosen later.
// CHECK-LABEL: @scaled(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot_scaled %a scale %as, %b scale %bs, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<128x64xf8E4M3FN, #blocked>, tensor<128x2xi8, #blocked7> * tensor<64x128xf8E4M3FN, #blocked9>, tensor<128x2xi8, #blocked7> -> tensor<128x128xf32, #blocked9>
// CHECK-NEXT: tt.return %[[A]] : tensor<128x128xf32, #blocked9>
tt.func public @scaled(%a: tensor<128x64xf8E4M3FN>, %as: tensor<128x2xi8>, %b: tensor<64x128xf8E4M3FN>, %bs: tensor<128x2xi8>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %0 = tt.dot_scaled %a scale %as, %b scale %bs, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<128x64xf8E4M3FN>, tensor<128x2xi8> * tensor<64x128xf8E4M3FN>, tensor<128x2xi8> -> tensor<128x128xf32>
  tt.return %0 : tensor<128x128xf32>
}
}
