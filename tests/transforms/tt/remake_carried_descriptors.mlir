// RUN: tilework opt %s -p triton-remake-carried-descriptors

// The descriptor of the iteration before is made again from what it describes; before the first iteration it is the handle of %d.
tt.func public @carried(%p: !tt.ptr<f32>, %d: !tt.tensordesc<tensor<8x32xf32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 32 : i64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%last = %d) -> (!tt.tensordesc<tensor<8x32xf32>>) : i32 {
    %x = tt.descriptor_load %last[%c0, %c0] : !tt.tensordesc<tensor<8x32xf32>> -> tensor<8x32xf32>
    tt.descriptor_store %d[%c0, %c0], %x : !tt.tensordesc<tensor<8x32xf32>>, tensor<8x32xf32>
    %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
    %new = tt.make_tensor_descriptor %q, [%c8, %c32], [%width, %one] : <f32>, <tensor<8x32xf32>>
    scf.yield %new : !tt.tensordesc<tensor<8x32xf32>>
  }
  tt.return
}
// CHECK-LABEL: @carried
// CHECK: %[[R:.*]]:7 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[LAST:.*]] = %d, %[[KIND:.*]] = %c0_i32, %[[BASE:.*]] = %0, %[[M:.*]] = %1, %[[N:.*]] = %2, %[[S:.*]] = %3, %[[T:.*]] = %4)
// CHECK: %[[NEW:.*]] = arith.cmpi ne, %[[KIND]]
// CHECK: %[[D:.*]] = scf.if %[[NEW]]
// CHECK-NEXT: %[[AGAIN:.*]] = tt.make_tensor_descriptor %[[BASE]], [%[[M]], %[[N]]], [%[[S]], %[[T]]]
// CHECK-NEXT: scf.yield %[[AGAIN]]
// CHECK: scf.yield %[[LAST]]
// CHECK: tt.descriptor_load %[[D]]
// CHECK: tt.descriptor_store %d
// CHECK: %[[Q:.*]] = tt.addptr %p, %[[I]]
// CHECK: %[[NEW:.*]] = tt.make_tensor_descriptor %[[Q]], [%[[C8:.*]], %[[C32:.*]]], [%[[W:.*]], %[[ONE:.*]]]
// CHECK: scf.yield %[[NEW]], %{{.*}}, %[[Q]], %[[C8]], %[[C32]], %[[W]], %[[ONE]]


// A descriptor that lives for one iteration, and one that is only used behind the loop, stay as they are.
tt.func public @not_carried(%p: !tt.ptr<f32>, %d: !tt.tensordesc<tensor<8x32xf32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 32 : i64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%last = %d) -> (!tt.tensordesc<tensor<8x32xf32>>) : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
    %new = tt.make_tensor_descriptor %q, [%c8, %c32], [%width, %one] : <f32>, <tensor<8x32xf32>>
    %x = tt.descriptor_load %new[%c0, %c0] : !tt.tensordesc<tensor<8x32xf32>> -> tensor<8x32xf32>
    tt.descriptor_store %d[%c0, %c0], %x : !tt.tensordesc<tensor<8x32xf32>>, tensor<8x32xf32>
    scf.yield %new : !tt.tensordesc<tensor<8x32xf32>>
  }
  %x = tt.descriptor_load %r[%c0, %c0] : !tt.tensordesc<tensor<8x32xf32>> -> tensor<8x32xf32>
  tt.descriptor_store %d[%c8, %c0], %x : !tt.tensordesc<tensor<8x32xf32>>, tensor<8x32xf32>
  tt.return
}
// CHECK-LABEL: @not_carried
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %d) ->
// CHECK-NOT: scf.if
// CHECK: tt.descriptor_load %[[R]]


// Functions that give the descriptor are inlined into the loop, with the functions that they call.
tt.func private @inner(%p: !tt.ptr<f32>) -> !tt.tensordesc<tensor<8x32xf32>> attributes {noinline = true} {
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 32 : i64
  %new = tt.make_tensor_descriptor %p, [%c8, %c32], [%width, %one] : <f32>, <tensor<8x32xf32>>
  tt.return %new : !tt.tensordesc<tensor<8x32xf32>>
}
tt.func private @outer(%p: !tt.ptr<f32>, %i: i32) -> !tt.tensordesc<tensor<8x32xf32>> attributes {noinline = true} {
  %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
  %new = tt.call @inner(%q) : (!tt.ptr<f32>) -> !tt.tensordesc<tensor<8x32xf32>>
  tt.return %new : !tt.tensordesc<tensor<8x32xf32>>
}
tt.func public @by_calls(%p: !tt.ptr<f32>, %d: !tt.tensordesc<tensor<8x32xf32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%last = %d) -> (!tt.tensordesc<tensor<8x32xf32>>) : i32 {
    %x = tt.descriptor_load %last[%c0, %c0] : !tt.tensordesc<tensor<8x32xf32>> -> tensor<8x32xf32>
    tt.descriptor_store %d[%c0, %c0], %x : !tt.tensordesc<tensor<8x32xf32>>, tensor<8x32xf32>
    %new = tt.call @outer(%p, %i) : (!tt.ptr<f32>, i32) -> !tt.tensordesc<tensor<8x32xf32>>
    scf.yield %new : !tt.tensordesc<tensor<8x32xf32>>
  }
  tt.return
}
// CHECK-LABEL: @by_calls
// CHECK: scf.for
// CHECK-NOT: tt.call
// CHECK: scf.if
// CHECK-NOT: tt.call
// CHECK: %[[Q:.*]] = tt.addptr
// CHECK-NOT: tt.call
// CHECK: %[[NEW:.*]] = tt.make_tensor_descriptor %[[Q]]
// CHECK: scf.yield %[[NEW]], %{{.*}}, %[[Q]]
