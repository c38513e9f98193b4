// RUN: tilework opt %s -p triton-rewrite-tensor-pointer

// The load checks both axes and pads with NaN, the store checks axis 0; offsets are 64 bits wide.
// CHECK-LABEL: tt.func public @load_store
// CHECK:       %[[O0:.*]] = arith.extsi %o : i32 to i64
// CHECK-NEXT:  %[[O1:.*]] = arith.extsi %c0 : i32 to i64
// CHECK-NEXT:  %[[D0:.*]] = arith.extsi %c0 : i32 to i64
// CHECK-NEXT:  %[[A0:.*]] = arith.addi %[[O0]], %[[D0]] : i64
// CHECK-NEXT:  %[[D1:.*]] = arith.extsi %c4 : i32 to i64
// CHECK-NEXT:  %[[A1:.*]] = arith.addi %[[O1]], %[[D1]] : i64
// CHECK-NEXT:  %[[P:.*]] = tt.splat %p : !tt.ptr<f32> -> tensor<8x4x!tt.ptr<f32>>
// CHECK-NEXT:  %[[S0:.*]] = tt.splat %[[A0]] : i64 -> tensor<8xi64>
// CHECK-NEXT:  %[[R0:.*]] = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
// CHECK-NEXT:  %[[X0:.*]] = arith.extsi %[[R0]] : tensor<8xi32> to tensor<8xi64>
// CHECK-NEXT:  %[[I0:.*]] = arith.addi %[[S0]], %[[X0]] : tensor<8xi64>
// CHECK-NEXT:  %[[E0:.*]] = tt.expand_dims %[[I0]] {axis = 1 : i32} : tensor<8xi64> -> tensor<8x1xi64>
// CHECK-NEXT:  %[[T0:.*]] = tt.splat %s : i64 -> tensor<8x1xi64>
// CHECK-NEXT:  %[[M0:.*]] = arith.muli %[[E0]], %[[T0]] : tensor<8x1xi64>
// CHECK-NEXT:  %[[B0:.*]] = tt.broadcast %[[M0]] : tensor<8x1xi64> -> tensor<8x4xi64>
// CHECK-NEXT:  %[[P0:.*]] = tt.addptr %[[P]], %[[B0]] : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi64>
// CHECK:       %[[E1:.*]] = tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<4xi64> -> tensor<1x4xi64>
// CHECK:       %[[P1:.*]] = tt.addptr %[[P0]], %{{.*}}
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT:  %[[Z0:.*]] = tt.splat %[[ZERO]] : i64 -> tensor<8x1xi64>
// CHECK-NEXT:  %[[GE:.*]] = arith.cmpi sge, %[[E0]], %[[Z0]] : tensor<8x1xi64>
// CHECK-NEXT:  %[[N0:.*]] = tt.splat %n : i64 -> tensor<8x1xi64>
// CHECK-NEXT:  %[[LT:.*]] = arith.cmpi slt, %[[E0]], %[[N0]] : tensor<8x1xi64>
// CHECK-NEXT:  %[[IN0:.*]] = arith.andi %[[GE]], %[[LT]] : tensor<8x1xi1>
// CHECK-NEXT:  %[[K0:.*]] = tt.broadcast %[[IN0]] : tensor<8x1xi1> -> tensor<8x4xi1>
// CHECK:       arith.cmpi slt, %[[E1]], %{{.*}} : tensor<1x4xi64>
// CHECK:       %[[K1:.*]] = tt.broadcast %{{.*}} : tensor<1x4xi1> -> tensor<8x4xi1>
// CHECK-NEXT:  %[[MASK:.*]] = arith.andi %[[K0]], %[[K1]] : tensor<8x4xi1>
// CHECK-NEXT:  %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK-NEXT:  %[[OTHER:.*]] = tt.splat %[[NAN]] : f32 -> tensor<8x4xf32>
// CHECK-NEXT:  %[[V:.*]] = tt.load %[[P1]], %[[MASK]], %[[OTHER]] cacheModifier = cg {note} : tensor<8x4x!tt.ptr<f32>>
// CHECK:       tt.store %{{.*}}, %[[V]], %{{.*}} evictionPolicy = evict_first : tensor<8x4x!tt.ptr<f32>>
// CHECK-NEXT:  tt.return
tt.func public @load_store(%p: !tt.ptr<f32>, %n: i64, %s: i64, %o: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c1 = arith.constant 1 : i64
  %b = tt.make_tensor_ptr %p, [%n, %n], [%s, %c1], [%o, %c0] {order = array<i32: 1, 0>} : <tensor<8x4xf32>>
  %b2 = tt.advance %b, [%c0, %c4] : <tensor<8x4xf32>>
  %v = tt.load %b2 cacheModifier = cg {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32, note} : !tt.ptr<tensor<8x4xf32>>
  tt.store %b2, %v evictionPolicy = evict_first {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<8x4xf32>>
  tt.return
}

// Nothing to check: no mask, and so no padding either.
// CHECK-LABEL: tt.func public @unchecked
// CHECK-NOT:   arith.cmpi
// CHECK:       tt.load %{{[a-z0-9_]+}} : tensor<8x!tt.ptr<i8>>
// CHECK-NEXT:  tt.return
tt.func public @unchecked(%p: !tt.ptr<i8>, %n: i64, %s: i64, %o: i32) -> tensor<8xi8> {
  %b = tt.make_tensor_ptr %p, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xi8>>
  %v = tt.load %b {padding = 1 : i32} : !tt.ptr<tensor<8xi8>>
  tt.return %v : tensor<8xi8>
}

// A loop carries base, shape, strides and offsets, and a branch yields them; `canonicalize` leaves the offsets. Attributes of the loop stay.
// CHECK-LABEL: tt.func public @loop
// CHECK:       %[[L:.*]]:8 = scf.for %i = %c0 to %o step %c4 iter_args(%[[P:.*]] = %p, %[[N0:.*]] = %n, %[[N1:.*]] = %n, %[[S0:.*]] = %s, %[[S1:.*]] = %c1, %[[X:.*]] = %[[O0:.*]], %[[Y:.*]] = %[[O1:.*]], %a = %z) -> (!tt.ptr<f32>, i64, i64, i64, i64, i64, i64, tensor<8x4xf32>)
// CHECK:         tt.splat %[[X]] : i64 -> tensor<8xi64>
// CHECK:         tt.splat %[[Y]] : i64 -> tensor<4xi64>
// CHECK:         %[[I:.*]]:7 = scf.if %c -> (!tt.ptr<f32>, i64, i64, i64, i64, i64, i64) {
// CHECK:           %[[D0:.*]] = arith.addi %[[X]], %{{.*}} : i64
// CHECK:           %[[D1:.*]] = arith.addi %[[Y]], %{{.*}} : i64
// CHECK-NEXT:      scf.yield %[[P]], %[[N0]], %[[N1]], %[[S0]], %[[S1]], %[[D0]], %[[D1]] :
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[P]], %[[N0]], %[[N1]], %[[S0]], %[[S1]], %[[X]], %[[Y]] :
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.yield %[[I]]#0, %[[I]]#1, %[[I]]#2, %[[I]]#3, %[[I]]#4, %[[I]]#5, %[[I]]#6, %w :
// CHECK-NEXT:  } {tt.num_stages = 3 : i32}
// CHECK:       tt.splat %[[L]]#5 : i64 -> tensor<8xi64>
// CHECK:       tt.splat %[[L]]#6 : i64 -> tensor<4xi64>
// CHECK:       tt.store %{{.*}}, %[[L]]#7 : tensor<8x4x!tt.ptr<f32>>
tt.func public @loop(%p: !tt.ptr<f32>, %n: i64, %s: i64, %o: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c1 = arith.constant 1 : i64
  %z = arith.constant dense<0.0> : tensor<8x4xf32>
  %b = tt.make_tensor_ptr %p, [%n, %n], [%s, %c1], [%o, %c0] {order = array<i32: 1, 0>} : <tensor<8x4xf32>>
  %r:2 = scf.for %i = %c0 to %o step %c4 iter_args(%bb = %b, %a = %z) -> (!tt.ptr<tensor<8x4xf32>>, tensor<8x4xf32>) : i32 {
    %v = tt.load %bb {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<8x4xf32>>
    %w = arith.addf %a, %v : tensor<8x4xf32>
    %b2 = scf.if %c -> (!tt.ptr<tensor<8x4xf32>>) {
      %b3 = tt.advance %bb, [%c0, %c4] : <tensor<8x4xf32>>
      scf.yield %b3 : !tt.ptr<tensor<8x4xf32>>
    } else {
      scf.yield %bb : !tt.ptr<tensor<8x4xf32>>
    }
    scf.yield %b2, %w : !tt.ptr<tensor<8x4xf32>>, tensor<8x4xf32>
  } {tt.num_stages = 3 : i32}
  tt.store %r#0, %r#1 : !tt.ptr<tensor<8x4xf32>>
  tt.return
}

// The inner loop starts where the outer one is.
// CHECK-LABEL: tt.func public @nested
// CHECK:       scf.for %i = {{.*}} iter_args(%[[P:.*]] = %p, %[[N:.*]] = %n, %[[S:.*]] = %s, %[[X:.*]] = %{{.*}})
// CHECK-NEXT:    %[[IN:.*]]:4 = scf.for %j = {{.*}} iter_args(%[[P2:.*]] = %[[P]], %[[N2:.*]] = %[[N]], %[[S2:.*]] = %[[S]], %[[Y:.*]] = %[[X]])
// CHECK:           %[[D:.*]] = arith.addi %[[Y]], %{{.*}} : i64
// CHECK-NEXT:      scf.yield %[[P2]], %[[N2]], %[[S2]], %[[D]] :
// CHECK:         scf.yield %[[IN]]#0, %[[IN]]#1, %[[IN]]#2, %[[IN]]#3 :
tt.func public @nested(%p: !tt.ptr<f32>, %n: i64, %s: i64, %o: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %b = tt.make_tensor_ptr %p, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xf32>>
  %r = scf.for %i = %c0 to %o step %c4 iter_args(%bb = %b) -> (!tt.ptr<tensor<8xf32>>) : i32 {
    %q = scf.for %j = %c0 to %o step %c4 iter_args(%cc = %bb) -> (!tt.ptr<tensor<8xf32>>) : i32 {
      %d = tt.advance %cc, [%c4] : <tensor<8xf32>>
      scf.yield %d : !tt.ptr<tensor<8xf32>>
    }
    scf.yield %q : !tt.ptr<tensor<8xf32>>
  }
  tt.return
}

// Branches on two arrays.
// CHECK-LABEL: tt.func public @two_arrays
// CHECK:       %[[I:.*]]:4 = scf.if %c -> (!tt.ptr<f32>, i64, i64, i64) {
// CHECK:         scf.yield %p, %n, %s, %{{.*}} :
// CHECK:         scf.yield %q, %n, %s, %{{.*}} :
// CHECK:       tt.splat %[[I]]#0 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
// CHECK-NEXT:  tt.splat %[[I]]#3 : i64 -> tensor<8xi64>
tt.func public @two_arrays(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i64, %s: i64, %o: i32, %c: i1) -> tensor<8xf32> {
  %b = scf.if %c -> (!tt.ptr<tensor<8xf32>>) {
    %x = tt.make_tensor_ptr %p, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xf32>>
    scf.yield %x : !tt.ptr<tensor<8xf32>>
  } else {
    %y = tt.make_tensor_ptr %q, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xf32>>
    scf.yield %y : !tt.ptr<tensor<8xf32>>
  }
  %v = tt.load %b : !tt.ptr<tensor<8xf32>>
  tt.return %v : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @select
// CHECK:       %[[P:.*]] = arith.select %c, %p, %q : !tt.ptr<f32>
// CHECK:       tt.splat %[[P]] : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
tt.func public @select(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i64, %s: i64, %o: i32, %c: i1) -> tensor<8xf32> {
  %x = tt.make_tensor_ptr %p, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xf32>>
  %y = tt.make_tensor_ptr %q, [%n], [%s], [%o] {order = array<i32: 0>} : <tensor<8xf32>>
  %b = arith.select %c, %x, %y : !tt.ptr<tensor<8xf32>>
  %v = tt.load %b : !tt.ptr<tensor<8xf32>>
  tt.return %v : tensor<8xf32>
}

// Tensors of pointers stay as they are.
// CHECK-LABEL: tt.func public @plain
// CHECK-NEXT:  %v = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT:  tt.store %p, %v : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT:  tt.return
tt.func public @plain(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<8xi1>) {
  %v = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  tt.store %p, %v : tensor<8x!tt.ptr<f32>>
  tt.return
}
