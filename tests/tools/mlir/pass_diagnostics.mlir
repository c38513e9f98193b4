// RUN: tilework opt %s -triton-rewrite-tensor-descriptor-to-pointer --verify-diagnostics

tt.func @reduce(%base: !tt.ptr<f32>, %x: tensor<8x8xf32>) {
  %n = arith.constant 8 : i32
  %s = arith.constant 8 : i64
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %base, [%n, %n], [%s, %one] : <f32>, <tensor<8x8xf32>>
  // expected-error @below {{Cannot fallback on descriptor atomic op, unsupported for type f32}}
  tt.descriptor_reduce max, %d[%n, %n], %x : !tt.tensordesc<tensor<8x8xf32>>, tensor<8x8xf32>
  tt.return
}
