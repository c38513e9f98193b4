// RUN: tilework opt %s -p tt-visible-nans

// What a store shows has one pattern of NaN.
// CHECK-LABEL: tt.func public @stored
// CHECK:       %[[BITS:.*]] = tt.bitcast %x : f32 -> i32
// CHECK:       %[[SIZE:.*]] = arith.andi %[[BITS]], %{{.*}} : i32
// CHECK:       %[[NAN:.*]] = arith.cmpi ugt, %[[SIZE]], %{{.*}} : i32
// CHECK:       %[[ONE:.*]] = arith.select %[[NAN]], %{{.*}}, %[[BITS]] : i32
// CHECK-NEXT:  %[[BACK:.*]] = tt.bitcast %[[ONE]] : i32 -> f32
// CHECK-NEXT:  tt.store %p, %[[BACK]] : !tt.ptr<f32>
tt.func public @stored(%p: !tt.ptr<f32>, %x: f32) {
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// A cast to the bits shows them too, a sum of floats does not.
// CHECK-LABEL: tt.func public @cast
// CHECK-NEXT:  %y = arith.addf %x, %x : tensor<64xf16>
// CHECK:       arith.cmpi ugt
// CHECK:       tt.bitcast %{{.*}} : tensor<64xf16> -> tensor<64xi16>
tt.func public @cast(%x: tensor<64xf16>) -> tensor<64xi16> {
  %y = arith.addf %x, %x : tensor<64xf16>
  %z = tt.bitcast %y : tensor<64xf16> -> tensor<64xi16>
  tt.return %z : tensor<64xi16>
}

// An integer before, a constant and a format with one NaN are left alone.
// CHECK-LABEL: tt.func public @numbers
// CHECK-NOT:   arith.cmpi
// CHECK:       tt.return
tt.func public @numbers(%p: !tt.ptr<f32>, %q: !tt.ptr<f8E4M3FNUZ>, %i: i32, %x: f8E4M3FNUZ) {
  %c = arith.constant 1.000000e+00 : f32
  %f = arith.sitofp %i : i32 to f32
  tt.store %p, %f : !tt.ptr<f32>
  tt.store %p, %c : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f8E4M3FNUZ>
  tt.return
}

// Memory that an atomic has added up to a NaN gets the pattern.
// CHECK-LABEL: tt.func public @added
// CHECK:       %old = tt.atomic_rmw fadd
// CHECK:       %[[SUM:.*]] = arith.addf %old, %{{.*}} : tensor<64xf16>
// CHECK:       %[[BITS:.*]] = tt.bitcast %[[SUM]] : tensor<64xf16> -> tensor<64xi16>
// CHECK:       %[[NAN:.*]] = arith.cmpi ugt
// CHECK:       %[[THERE:.*]] = arith.andi %[[NAN]], %m : tensor<64xi1>
// CHECK:       %[[PLACES:.*]] = tt.bitcast %p : tensor<64x!tt.ptr<f16>> -> tensor<64x!tt.ptr<i16>>
// CHECK-NEXT:  tt.store %[[PLACES]], %{{.*}}, %[[THERE]] : tensor<64x!tt.ptr<i16>>
tt.func public @added(%p: tensor<64x!tt.ptr<f16>>, %x: tensor<64xf16>, %m: tensor<64xi1>) {
  %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %x, %m {tilework.ordered} : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> tensor<64xf16>
  tt.return
}
