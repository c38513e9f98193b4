// RUN: tilework opt %s -p pad-tiles --check-each

// The range counts on; what is not seen is not loaded, neutral in the sum, and not stored.
// CHECK-LABEL: tt.func public @sum
// CHECK-DAG:   %[[LIMIT:.*]] = arith.constant dense<96> : tensor<128xi32>
// CHECK-DAG:   %[[NEUTRAL:.*]] = arith.constant dense<-0.000000e+00> : tensor<128xf32>
// CHECK:       %[[I:.*]] = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
// CHECK-NEXT:  %[[SEEN:.*]] = arith.cmpi slt, %[[I]], %[[LIMIT]] : tensor<128xi32>
// CHECK:       %[[X:.*]] = tt.load %{{.*}}, %[[SEEN]] {tilework.visible = [array<i32: 96>]} : tensor<128x!tt.ptr<f32>>
// CHECK-NEXT:  %[[Y:.*]] = arith.select %[[SEEN]], %[[X]], %[[NEUTRAL]] : tensor<128xi1>, tensor<128xf32>
// CHECK-NEXT:  "tt.reduce"(%[[Y]])
// CHECK:       %[[BOTH:.*]] = arith.andi %{{.*}}, %[[SEEN]] : tensor<128xi1>
// CHECK-NEXT:  tt.store %{{.*}}, %{{.*}}, %[[BOTH]] {tilework.visible = [array<i32: 96>, array<i32: 96>, array<i32: 96>]} : tensor<128x!tt.ptr<f32>>
tt.func public @sum(%p: !tt.ptr<f32>, %n: i32) {
  %i = tt.make_range {end = 96 : i32, start = 0 : i32} : tensor<96xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<96x!tt.ptr<f32>>
  %a = tt.addptr %q, %i : tensor<96x!tt.ptr<f32>>, tensor<96xi32>
  %x = tt.load %a : tensor<96x!tt.ptr<f32>>
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %m = arith.addf %l, %r : f32
    tt.reduce.return %m : f32
  }) : (tensor<96xf32>) -> f32
  %t = tt.splat %s : f32 -> tensor<96xf32>
  %k = tt.splat %n : i32 -> tensor<96xi32>
  %mask = arith.cmpi slt, %i, %k : tensor<96xi32>
  tt.store %a, %t, %mask : tensor<96x!tt.ptr<f32>>
  tt.return
}

// A function without a neutral element gets a mask of the visible elements.
// CHECK-LABEL: tt.func public @own_function
// CHECK:       %[[S:.*]]:2 = "tt.reduce"(%x, %[[SEEN:.*]]) <{axis = 1 : i32}> ({
// CHECK-NEXT:  ^{{.*}}(%[[L:.*]]: f32, %[[LV:.*]]: i1, %[[R:.*]]: f32, %[[RV:.*]]: i1):
// CHECK:         %[[M:.*]] = arith.subf %[[L]], %[[R]] : f32
// CHECK-NEXT:    %[[A:.*]] = arith.select %[[RV]], %[[M]], %[[L]] : f32
// CHECK-NEXT:    %[[B:.*]] = arith.select %[[LV]], %[[A]], %[[R]] : f32
// CHECK-NEXT:    %[[V:.*]] = arith.ori %[[LV]], %[[RV]] : i1
// CHECK-NEXT:    tt.reduce.return %[[B]], %[[V]] : f32, i1
// CHECK:       }) {"tilework.in-order"} : (tensor<4x8xf32>, tensor<4x8xi1>) -> (tensor<4xf32>, tensor<4xi1>)
// CHECK:       tt.return %[[S]]#0 : tensor<4xf32>
tt.func public @own_function(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %m = arith.subf %l, %r : f32
    tt.reduce.return %m : f32
  }) : (tensor<3x5xf32>) -> tensor<3xf32>
  tt.return %s : tensor<3xf32>
}

// Rows and columns that are not seen may hold anything; along K the loads give zeros, and another value is selected.
// CHECK-LABEL: tt.func public @dot
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xf16>
// CHECK:       %[[A:.*]] = tt.load %pa, %[[MASK:.*]], %[[ZERO]] {{.*}} : tensor<128x64x!tt.ptr<f16>>
// CHECK:       %[[B:.*]] = arith.select %{{.*}}, %b, %{{.*}} : tensor<64x32xi1>, tensor<64x32xf16>
// CHECK-NEXT:  tt.dot %[[A]], %[[B]], %c {tilework.visible = [array<i32: 96, 48>, array<i32: 48, 32>, array<i32: 96, 32>]} : tensor<128x64xf16> * tensor<64x32xf16> -> tensor<128x32xf32>
tt.func public @dot(%pa: tensor<96x48x!tt.ptr<f16>>, %b: tensor<48x32xf16>, %c: tensor<96x32xf32>) -> tensor<96x32xf32> {
  %a = tt.load %pa : tensor<96x48x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %c : tensor<96x48xf16> * tensor<48x32xf16> -> tensor<96x32xf32>
  tt.return %d : tensor<96x32xf32>
}

// Elements that keep their places are reshaped, others gathered. Which order is chosen for them matters when some are not seen.
// CHECK-LABEL: tt.func public @reshapes
// CHECK:       tt.reshape %x : tensor<8x4xf32> -> tensor<4x2x4xf32>
// CHECK:       %[[F:.*]] = tt.reshape %x : tensor<8x4xf32> -> tensor<32xf32>
// CHECK-NEXT:  %[[G:.*]] = tt.gather %[[F]]
// CHECK-NEXT:  tt.reshape %[[G]] : tensor<32xf32> -> tensor<8x4xf32>
tt.func public @reshapes(%x: tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<8x3xf32>) {
  %a = tt.reshape %x : tensor<6x4xf32> -> tensor<3x2x4xf32>
  %b = tt.reshape %x allow_reorder : tensor<6x4xf32> -> tensor<8x3xf32>
  tt.return %a, %b : tensor<3x2x4xf32>, tensor<8x3xf32>
}

// CHECK-LABEL: tt.func public @others
// CHECK:       tt.atomic_cas acq_rel, gpu, %p, %c, %v, %[[SEEN:[0-9]+]] {{.*}} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>
// CHECK:       tt.print "x: " {hex = false, isSigned = array<i32: 1>, tilework.visible = [array<i32: 3>]} : %v : tensor<4xi32>
// CHECK:       %[[H:.*]] = arith.select %[[SEEN]], %m, %{{.*}} : tensor<4xi1>, tensor<4xi1>
// CHECK-NEXT:  tt.assert %[[H]], "positive" : tensor<4xi1>
// CHECK:       arith.divsi %v, %{{[0-9]+}} : tensor<4xi32>
// CHECK:       tt.call @callee(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
tt.func public @others(%p: tensor<3x!tt.ptr<i32>>, %c: tensor<3xi32>, %v: tensor<3xi32>, %m: tensor<3xi1>) {
  %old = tt.atomic_cas acq_rel, gpu, %p, %c, %v : (tensor<3x!tt.ptr<i32>>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %v : tensor<3xi32>
  tt.assert %m, "positive" : tensor<3xi1>
  %q = arith.divsi %v, %c : tensor<3xi32>
  %r = tt.call @callee(%q) : (tensor<3xi32>) -> tensor<3xi32>
  tt.store %p, %r : tensor<3x!tt.ptr<i32>>
  tt.return
}

// CHECK-LABEL: tt.func private @callee(%x: tensor<4xi32>) -> tensor<4xi32>
tt.func private @callee(%x: tensor<3xi32>) -> tensor<3xi32> attributes {noinline = true} {
  tt.return %x : tensor<3xi32>
}
