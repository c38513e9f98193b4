// RUN: tilework opt %s -p tt-unroll-short-loops

// The counter of each body is a constant.
// CHECK-LABEL: tt.func public @three
// CHECK-NOT:   scf.for
// CHECK-DAG:   %[[A:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG:   %[[B:.*]] = arith.constant 9.000000e+00 : f32
// CHECK-DAG:   %[[C:.*]] = arith.constant 1.600000e+01 : f32
// CHECK:       %[[T0:.*]] = arith.addf %f, %[[A]] : f32
// CHECK-NEXT:  %[[T1:.*]] = arith.addf %[[T0]], %[[B]] : f32
// CHECK-NEXT:  %[[T2:.*]] = arith.addf %[[T1]], %[[C]] : f32
// CHECK-NEXT:  tt.return %[[T2]] : f32
tt.func public @three(%f: f32) -> f32 {
  %c2 = arith.constant 2 : i32
  %c7 = arith.constant 7 : i32
  %c22 = arith.constant 22 : i32
  %r = scf.for %k = %c2 to %c22 step %c7 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  }
  tt.return %r : f32
}

// Five iterations, an end that is not known, a hint, a loop inside, and a large body: these loops stay.
// CHECK-LABEL: tt.func public @others
// CHECK-COUNT-6: scf.for
// CHECK:         tt.return
tt.func public @others(%f: f32, %n: i32, %x: tensor<65536xf32>) -> (f32, f32, f32, f32, tensor<65536xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c5 = arith.constant 5 : i32
  %five = scf.for %k = %c0 to %c5 step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  }
  %unknown = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  }
  %hinted = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  } {tt.num_stages = 2 : i32}
  %outer = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %inner = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %acc) -> (f32) : i32 {
      %jf = arith.sitofp %j : i32 to f32
      %t = arith.mulf %sum, %jf : f32
      scf.yield %t : f32
    }
    scf.yield %inner : f32
  }
  %large = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %x) -> (tensor<65536xf32>) : i32 {
    %t = arith.mulf %acc, %x : tensor<65536xf32>
    scf.yield %t : tensor<65536xf32>
  }
  tt.return %five, %unknown, %hinted, %outer, %large : f32, f32, f32, f32, tensor<65536xf32>
}
