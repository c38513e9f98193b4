// RUN: tilework opt %s -p triton-check-undefined

// What was loaded under a mask is stored under the same one, or under one that implies it: nothing to do.

// CHECK-LABEL: tt.func public @same_mask(
// CHECK-NOT: tt.assert
// CHECK: tt.return
tt.func public @same_mask(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<8xi1>, %n: tensor<8xi1>) {
  %x = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  %y = math.exp %x : tensor<8xf32>
  tt.store %p, %y, %m : tensor<8x!tt.ptr<f32>>
  %both = arith.andi %n, %m : tensor<8xi1>
  tt.store %p, %y, %both : tensor<8x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @stored(
// CHECK: %[[U:.*]] = arith.select %m, %{{.*}}, %{{.*}} : tensor<8xi1>, tensor<8xi8>
// CHECK: %[[BAD:.*]] = arith.select %n, %[[U]], %{{.*}} : tensor<8xi1>, tensor<8xi8>
// CHECK: %[[ANY:.*]] = "tt.reduce"
// CHECK: arith.maxui
// CHECK: %[[OK:.*]] = arith.cmpi ne, %[[ANY]], %{{.*}} : i8
// CHECK-NEXT: tt.assert %[[OK]], "sanitizer warning: a load of argument #0 masks elements off and gives no `other` for them, and one is stored
// CHECK-NEXT: tt.store
tt.func public @stored(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<8xi1>, %n: tensor<8xi1>) {
  %x = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  tt.store %p, %x, %n : tensor<8x!tt.ptr<f32>>
  tt.return
}

// With `other`, or with the undefined side not taken, all is defined.

// CHECK-LABEL: tt.func public @defined(
// CHECK-NOT: tt.assert
// CHECK: tt.return
tt.func public @defined(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<8xi1>, %zero: tensor<8xf32>) {
  %x = tt.load %p, %m, %zero : tensor<8x!tt.ptr<f32>>
  tt.store %p, %x : tensor<8x!tt.ptr<f32>>
  %y = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  %z = arith.select %m, %y, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %z : tensor<8x!tt.ptr<f32>>
  tt.return
}

// Loops carry the shadow of what they carry.

// CHECK-LABEL: tt.func public @carried(
// CHECK: %[[SUM:.*]]:2 = scf.for {{.*}} iter_args(%total = %zero, %[[S:.*]] = %{{.*}}) -> (tensor<8xf32>, tensor<8xi8>)
// CHECK: %[[NEXT:.*]] = arith.maxui %[[S]], %{{.*}} : tensor<8xi8>
// CHECK-NEXT: scf.yield %next, %[[NEXT]] : tensor<8xf32>, tensor<8xi8>
// CHECK: arith.select %k, %[[SUM]]#1, %{{.*}} : tensor<8xi1>, tensor<8xi8>
// CHECK: tt.assert
tt.func public @carried(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<8xi1>, %n: i32, %zero: tensor<8xf32>, %k: tensor<8xi1>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (tensor<8xf32>) : i32 {
    %x = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
    %next = arith.addf %total, %x : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  tt.store %p, %sum, %k : tensor<8x!tt.ptr<f32>>
  tt.return
}

// An exchange by exclusive or is not followed.

// CHECK-LABEL: tt.func public @exchanged(
// CHECK-NOT: tt.assert
// CHECK: tt.return
tt.func public @exchanged(%p: tensor<8x!tt.ptr<i32>>, %q: !tt.ptr<i32>, %m: tensor<8xi1>) {
  %x = tt.load %p, %m : tensor<8x!tt.ptr<i32>>
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<8xi32>) -> i32
  tt.store %q, %s : !tt.ptr<i32>
  tt.return
}

// The shadow of a tile that repeats a scalar is a scalar, also in loops; only where it is not 0 are lanes looked at.

// CHECK-LABEL: tt.func public @divided(
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %d, %{{.*}} : i32
// CHECK: scf.for {{.*}} -> (tensor<8x!tt.ptr<i32>>, i8)
// CHECK: scf.if
// CHECK: tt.assert %{{.*}}, "sanitizer: division by zero, and the result is part of an address
// CHECK: tt.store
tt.func public @divided(%p: tensor<8x!tt.ptr<i32>>, %m: tensor<8xi1>, %n: i32, %d: i32, %v: tensor<8xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %q = arith.divui %n, %d : i32
  %t = tt.splat %q : i32 -> tensor<8xi32>
  %moved = tt.addptr %p, %t : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%at = %moved) -> (tensor<8x!tt.ptr<i32>>) : i32 {
    tt.store %at, %v, %m : tensor<8x!tt.ptr<i32>>
    %next = tt.addptr %at, %v : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    scf.yield %next : tensor<8x!tt.ptr<i32>>
  }
  tt.return
}

// A sum may overflow where it is used as an index, or masked: only numbers that are stored count.

// CHECK-LABEL: tt.func public @indexed(
// CHECK-NOT: tt.assert
// CHECK: tt.return
tt.func public @indexed(%p: tensor<8x!tt.ptr<i32>>, %v: tensor<8xi32>) {
  %mask = arith.constant dense<255> : tensor<8xi32>
  %sum = arith.addi %v, %v overflow<nsw> : tensor<8xi32>
  %low = arith.andi %sum, %mask : tensor<8xi32>
  %at = tt.addptr %p, %sum : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
  tt.store %at, %low : tensor<8x!tt.ptr<i32>>
  tt.return
}
