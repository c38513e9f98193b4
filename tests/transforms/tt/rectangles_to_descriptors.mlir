// RUN: tilework opt %s -p tt-rectangles-to-descriptors -p canonicalize -p cse

// Rows by a stride, columns by the counter of the loop; a tile whose first dimension is contiguous is transposed. The ops that advanced the pointers are gone.
// CHECK:       tilework.rectangles = "{{.*}}\22maps\22: [{\22base\22: 0{{.*}}{\22base\22: 1
// CHECK-LABEL: tt.func public @product
// CHECK-SAME:  !tt.tensordesc<tensor<64x32xf16>>
// CHECK-SAME:  !tt.tensordesc<tensor<64x32xf16>>
// CHECK:       %[[ROW:.*]] = arith.muli %pid, %{{.*}} : i32
// CHECK:       scf.for %k = {{.*}} iter_args(%acc = %{{.*}}) -> (tensor<64x64xf32>)
// CHECK:         %[[A:.*]] = tt.descriptor_load %{{.*}}[%[[ROW]], %k] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
// CHECK:         %[[B:.*]] = tt.descriptor_load %{{.*}}[%{{.*}}, %k] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
// CHECK:         %[[T:.*]] = tt.trans %[[B]] {order = array<i32: 1, 0>}
// CHECK:         tt.dot %[[A]], %[[T]], %acc
// What no dot uses stays a load.
// CHECK:       tt.load
module {
  tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %M: i32, %K: i32, %stride: i32) {
    %zeros = arith.constant dense<0.0> : tensor<64x32xf16>
    %sum = arith.constant dense<0.0> : tensor<64x64xf32>
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %step = arith.constant dense<32> : tensor<64x32xi32>
    %turned_step = arith.constant dense<32> : tensor<32x64xi32>
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c64 : i32
    %r64 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %r32 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %firsts = tt.splat %first : i32 -> tensor<64xi32>
    %rm = arith.addi %firsts, %r64 : tensor<64xi32>
    %rows = tt.expand_dims %rm {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %strides = tt.splat %stride : i32 -> tensor<64x1xi32>
    %at = arith.muli %rows, %strides : tensor<64x1xi32>
    %columns = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %at_all = tt.broadcast %at : tensor<64x1xi32> -> tensor<64x32xi32>
    %columns_all = tt.broadcast %columns : tensor<1x32xi32> -> tensor<64x32xi32>
    %offsets = arith.addi %at_all, %columns_all : tensor<64x32xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %pa0 = tt.addptr %as, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %kd = tt.expand_dims %r32 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %nd = tt.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %strides_b = tt.splat %stride : i32 -> tensor<1x64xi32>
    %at_b = arith.muli %nd, %strides_b : tensor<1x64xi32>
    %at_b_all = tt.broadcast %at_b : tensor<1x64xi32> -> tensor<32x64xi32>
    %kd_all = tt.broadcast %kd : tensor<32x1xi32> -> tensor<32x64xi32>
    %offsets_b = arith.addi %at_b_all, %kd_all : tensor<32x64xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %pb0 = tt.addptr %bs, %offsets_b : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %Ms = tt.splat %M : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %rows, %Ms : tensor<64x1xi32>
    %mask = tt.broadcast %inside : tensor<64x1xi1> -> tensor<64x32xi1>
    %out:3 = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %sum, %pa = %pa0, %pb = %pb0) -> (tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>) : i32 {
      %x = tt.load %pa, %mask, %zeros : tensor<64x32x!tt.ptr<f16>>
      %y = tt.load %pb : tensor<32x64x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
      %na = tt.addptr %pa, %step : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
      %nb = tt.addptr %pb, %turned_step : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
      scf.yield %d, %na, %nb : tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %pc = tt.addptr %cs, %rm : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %bias = tt.load %pc : tensor<64x!tt.ptr<f32>>
    %s = "tt.reduce"(%out#0) <{axis = 1 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %pq = arith.addf %p, %q : f32
      tt.reduce.return %pq : f32
    }) : (tensor<64x64xf32>) -> tensor<64xf32>
    %t = arith.addf %s, %bias : tensor<64xf32>
    tt.store %pc, %t : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
