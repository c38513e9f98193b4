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
// CHECK: %[[U:.*]] = arith.xori %m, %{{.*}} : tensor<8xi1>
// CHECK-NEXT: %[[BAD:.*]] = arith.andi %[[U]], %n : tensor<8xi1>
// CHECK: %[[ANY:.*]] = "tt.reduce"
// CHECK: %[[OK:.*]] = arith.xori %[[ANY]], %{{.*}} : i1
// CHECK-NEXT: tt.assert %[[OK]], "sanitizer: what is stored is undefined: a load of argument #0 masks elements off, and gives no `other` for them" : i1
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
// CHECK: %[[SUM:.*]]:2 = scf.for {{.*}} iter_args(%total = %zero, %[[S:.*]] = %{{.*}}) -> (tensor<8xf32>, tensor<8xi1>)
// CHECK: %[[NEXT:.*]] = arith.ori %[[S]], %{{.*}} : tensor<8xi1>
// CHECK-NEXT: scf.yield %next, %[[NEXT]] : tensor<8xf32>, tensor<8xi1>
// CHECK: arith.andi %[[SUM]]#1, %k : tensor<8xi1>
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
