// RUN: tilework opt %s -p canonicalize

// Folds of the tt dialect.

// CHECK-LABEL: tt.func public @splat_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4xf32>
tt.func public @splat_constant(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %c = arith.constant 1.0 : f32
  %r = tt.splat %c : f32 -> tensor<4xf32>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @expand_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %x : f32 -> tensor<4x1xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x1xf32>
tt.func public @expand_splat(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x1xf32> {
  %s = tt.splat %x : f32 -> tensor<4xf32>
  %r = tt.expand_dims %s {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  tt.return %r : tensor<4x1xf32>
}

// CHECK-LABEL: tt.func public @expand_broadcast(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.expand_dims %a {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.expand_dims %[[A]] {axis = 0 : i32} : tensor<4x1xf32> -> tensor<1x4x1xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.broadcast %[[B]] : tensor<1x4x1xf32> -> tensor<1x4x8xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<1x4x8xf32>
tt.func public @expand_broadcast(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<1x4x8xf32> {
  %e = tt.expand_dims %a {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %b = tt.broadcast %e : tensor<4x1xf32> -> tensor<4x8xf32>
  %r = tt.expand_dims %b {axis = 0 : i32} : tensor<4x8xf32> -> tensor<1x4x8xf32>
  tt.return %r : tensor<1x4x8xf32>
}

// CHECK-LABEL: tt.func public @expand_elements(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<2x1xi32>
tt.func public @expand_elements(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<2x1xi32> {
  %c = arith.constant dense<[1, 2]> : tensor<2xi32>
  %r = tt.expand_dims %c {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  tt.return %r : tensor<2x1xi32>
}

// CHECK-LABEL: tt.func public @expand_range_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.expand_dims %[[A]] {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<4x1xi32>
tt.func public @expand_range_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x1xi32> {
  %c = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %r = tt.expand_dims %c {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  tt.return %r : tensor<4x1xi32>
}

// CHECK-LABEL: tt.func public @broadcast_same(
// CHECK-NEXT: tt.return %a : tensor<4xf32>
tt.func public @broadcast_same(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %r = tt.broadcast %a : tensor<4xf32> -> tensor<4xf32>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @broadcast_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %x : f32 -> tensor<4x8xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x8xf32>
tt.func public @broadcast_splat(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x8xf32> {
  %s = tt.splat %x : f32 -> tensor<4x1xf32>
  %r = tt.broadcast %s : tensor<4x1xf32> -> tensor<4x8xf32>
  tt.return %r : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func public @broadcast_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<4x8xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x8xf32>
tt.func public @broadcast_constant(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x8xf32> {
  %s = arith.constant dense<1.0> : tensor<4x1xf32>
  %r = tt.broadcast %s : tensor<4x1xf32> -> tensor<4x8xf32>
  tt.return %r : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func public @broadcast_twice(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.broadcast %b : tensor<1x1xf32> -> tensor<2x8xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<2x8xf32>
tt.func public @broadcast_twice(%b: tensor<1x1xf32>) -> tensor<2x8xf32> {
  %s = tt.broadcast %b : tensor<1x1xf32> -> tensor<2x1xf32>
  %r = tt.broadcast %s : tensor<2x1xf32> -> tensor<2x8xf32>
  tt.return %r : tensor<2x8xf32>
}

// CHECK-LABEL: tt.func public @reshape_same(
// CHECK-NEXT: tt.return %a : tensor<4xf32>
tt.func public @reshape_same(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %r = tt.reshape %a : tensor<4xf32> -> tensor<4xf32>
  tt.return %r : tensor<4xf32>
}

// one reshape; a reordering one if either was
// CHECK-LABEL: tt.func public @reshape_twice(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %a allow_reorder : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x1xf32>
tt.func public @reshape_twice(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x1xf32> {
  %b = tt.reshape %a allow_reorder : tensor<4xf32> -> tensor<2x2xf32>
  %r = tt.reshape %b : tensor<2x2xf32> -> tensor<4x1xf32>
  tt.return %r : tensor<4x1xf32>
}

// CHECK-LABEL: tt.func public @reshape_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %x : f32 -> tensor<2x2xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<2x2xf32>
tt.func public @reshape_splat(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<2x2xf32> {
  %b = tt.splat %x : f32 -> tensor<4xf32>
  %r = tt.reshape %b : tensor<4xf32> -> tensor<2x2xf32>
  tt.return %r : tensor<2x2xf32>
}

// CHECK-LABEL: tt.func public @reshape_elements(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<{{\[\[}}1, 2]]> : tensor<1x2xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<1x2xi32>
tt.func public @reshape_elements(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<1x2xi32> {
  %c = arith.constant dense<[1, 2]> : tensor<2xi32>
  %r = tt.reshape %c : tensor<2xi32> -> tensor<1x2xi32>
  tt.return %r : tensor<1x2xi32>
}

// CHECK-LABEL: tt.func public @reshape_efficient_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %a : tensor<4xf32> -> tensor<2x2xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.reshape %[[A]] allow_reorder efficient_layout : tensor<2x2xf32> -> tensor<4x1xf32>
// CHECK-NEXT: tt.return %[[B]] : tensor<4x1xf32>
tt.func public @reshape_efficient_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x1xf32> {
  %b = tt.reshape %a : tensor<4xf32> -> tensor<2x2xf32>
  %r = tt.reshape %b allow_reorder efficient_layout : tensor<2x2xf32> -> tensor<4x1xf32>
  tt.return %r : tensor<4x1xf32>
}

// CHECK-LABEL: tt.func public @trans_identity(
// CHECK-NEXT: tt.return %b : tensor<2x2xf32>
tt.func public @trans_identity(%b: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %r = tt.trans %b {order = array<i32: 0, 1>} : tensor<2x2xf32> -> tensor<2x2xf32>
  tt.return %r : tensor<2x2xf32>
}

// CHECK-LABEL: tt.func public @trans_twice(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %b {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x8x2xf32>
tt.func public @trans_twice(%b: tensor<2x4x8xf32>) -> tensor<4x8x2xf32> {
  %t = tt.trans %b {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %u = tt.trans %t {order = array<i32: 2, 0, 1>} : tensor<4x8x2xf32> -> tensor<2x4x8xf32>
  %r = tt.trans %u {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  tt.return %r : tensor<4x8x2xf32>
}

// CHECK-LABEL: tt.func public @trans_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<4x2xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4x2xf32>
tt.func public @trans_constant(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x2xf32> {
  %t = arith.constant dense<1.0> : tensor<2x4xf32>
  %r = tt.trans %t {order = array<i32: 1, 0>} : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %r : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func public @trans_swap_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.trans %b {order = array<i32: 1, 0>} : tensor<2x2xf32> -> tensor<2x2xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<2x2xf32>
tt.func public @trans_swap_stays(%b: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %r = tt.trans %b {order = array<i32: 1, 0>} : tensor<2x2xf32> -> tensor<2x2xf32>
  tt.return %r : tensor<2x2xf32>
}

// CHECK-LABEL: tt.func public @range_of_one(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<7> : tensor<1xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<1xi32>
tt.func public @range_of_one(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<1xi32> {
  %r = tt.make_range {end = 8 : i32, start = 7 : i32} : tensor<1xi32>
  tt.return %r : tensor<1xi32>
}

// CHECK-LABEL: tt.func public @range_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 8 : i32, start = 6 : i32} : tensor<2xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<2xi32>
tt.func public @range_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<2xi32> {
  %r = tt.make_range {end = 8 : i32, start = 6 : i32} : tensor<2xi32>
  tt.return %r : tensor<2xi32>
}

// CHECK-LABEL: tt.func public @addptr_zero(
// CHECK-NEXT: tt.return %p : tensor<4x!tt.ptr<f32>>
tt.func public @addptr_zero(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x!tt.ptr<f32>> {
  %z = arith.constant dense<0> : tensor<4xi32>
  %r = tt.addptr %p, %z : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.return %r : tensor<4x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func public @addptr_one_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1> : tensor<4xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.addptr %p, %[[A]] : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<4x!tt.ptr<f32>>
tt.func public @addptr_one_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4x!tt.ptr<f32>> {
  %z = arith.constant dense<1> : tensor<4xi32>
  %r = tt.addptr %p, %z : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.return %r : tensor<4x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func public @advance_zero(
// CHECK-NEXT: tt.return %b : !tt.ptr<tensor<8x4xf32>>
tt.func public @advance_zero(%b: !tt.ptr<tensor<8x4xf32>>) -> !tt.ptr<tensor<8x4xf32>> {
  %z = arith.constant 0 : i32
  %r = tt.advance %b, [%z, %z] : <tensor<8x4xf32>>
  tt.return %r : !tt.ptr<tensor<8x4xf32>>
}

// CHECK-LABEL: tt.func public @advance_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.advance %b, [%[[A]], %[[B]]] : <tensor<8x4xf32>>
// CHECK-NEXT: tt.return %[[C]] : !tt.ptr<tensor<8x4xf32>>
tt.func public @advance_stays(%b: !tt.ptr<tensor<8x4xf32>>) -> !tt.ptr<tensor<8x4xf32>> {
  %z = arith.constant 0 : i32
  %o = arith.constant 4 : i32
  %r = tt.advance %b, [%z, %o] : <tensor<8x4xf32>>
  tt.return %r : !tt.ptr<tensor<8x4xf32>>
}

// CHECK-LABEL: tt.func public @fp_to_fp_zero(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<-0.000000e+00> : tensor<4xf8E5M2>
// CHECK-NEXT: tt.return %[[A]] : tensor<4xf8E5M2>
tt.func public @fp_to_fp_zero(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf8E5M2> {
  %z = arith.constant dense<-0.0> : tensor<4xf32>
  %r = tt.fp_to_fp %z, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  tt.return %r : tensor<4xf8E5M2>
}

// CHECK-LABEL: tt.func public @fp_to_fp_one_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.fp_to_fp %[[A]], rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
// CHECK-NEXT: tt.return %[[B]] : tensor<4xf8E5M2>
tt.func public @fp_to_fp_one_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf8E5M2> {
  %z = arith.constant dense<1.0> : tensor<4xf32>
  %r = tt.fp_to_fp %z, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  tt.return %r : tensor<4xf8E5M2>
}

// CHECK-LABEL: tt.func public @load_all(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p cacheModifier = ca : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return %[[A]] : tensor<4xf32>
tt.func public @load_all(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %m = arith.constant dense<true> : tensor<4xi1>
  %r = tt.load %p, %m, %a cacheModifier = ca : tensor<4x!tt.ptr<f32>>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @load_nothing(
// CHECK-NEXT: tt.return %a : tensor<4xf32>
tt.func public @load_nothing(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %r = tt.load %p, %m, %a : tensor<4x!tt.ptr<f32>>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @load_undefined_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<false> : tensor<4xi1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p, %[[A]] : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return %[[B]] : tensor<4xf32>
tt.func public @load_undefined_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %r = tt.load %p, %m : tensor<4x!tt.ptr<f32>>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @load_unused(
// CHECK-NEXT: tt.return
tt.func public @load_unused(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  %r = tt.load %p : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @load_volatile_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p {isVolatile = true} : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func public @load_volatile_stays(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  %r = tt.load %p {isVolatile = true} : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @store_all(
// CHECK-NEXT: tt.store %p, %a : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func public @store_all(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  %t = arith.constant true
  %m = tt.splat %t : i1 -> tensor<4xi1>
  tt.store %p, %a, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @store_nothing(
// CHECK-NEXT: tt.return
tt.func public @store_nothing(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  %m = arith.constant dense<false> : tensor<4xi1>
  tt.store %p, %a, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @reduce_unused(
// CHECK-NEXT: tt.return
tt.func public @reduce_unused(%x: f32, %a: tensor<4xf32>, %p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  %r = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    tt.reduce.return %u : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}
