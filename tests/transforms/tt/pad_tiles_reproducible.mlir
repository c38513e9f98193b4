// RUN: tilework opt %s -p pad-tiles --check-each

// Adding 0 * 0 to a sum of -0 makes it +0; adding -0 * 0 changes nothing.
// CHECK-LABEL: tt.func public @dot
// CHECK-DAG:   %[[NEGATIVE:.*]] = arith.constant dense<-0.000000e+00> : tensor<16x64xf16>
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x16xf16>
// CHECK-DAG:   %[[A:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NEGATIVE]]
// CHECK-DAG:   %[[B:.*]] = arith.select %{{.*}}, %b, %[[ZERO]]
// CHECK:       tt.dot %[[A]], %[[B]], %c
module attributes {tilework.reproducible} {
  tt.func public @dot(%pa: tensor<16x48x!tt.ptr<f16>>, %b: tensor<48x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %a = tt.load %pa : tensor<16x48x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %c : tensor<16x48xf16> * tensor<48x16xf16> -> tensor<16x16xf32>
    tt.return %d : tensor<16x16xf32>
  }

  // Two numbers of 4 bits in a byte, both -0.
  // CHECK-LABEL: tt.func public @scaled
  // CHECK-DAG:   %[[PAIRS:.*]] = arith.constant dense<-120> : tensor<16x64xi8>
  // CHECK-DAG:   %[[A:.*]] = arith.select %{{.*}}, %a, %[[PAIRS]]
  // CHECK:       tt.dot_scaled %[[A]]
  tt.func public @scaled(%a: tensor<16x48xi8>, %s: tensor<16x3xi8>, %b: tensor<96x16xbf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = bf16 {fastMath = false} : tensor<16x48xi8>, tensor<16x3xi8> * tensor<96x16xbf16> -> tensor<16x16xf32>
    tt.return %d : tensor<16x16xf32>
  }
}
