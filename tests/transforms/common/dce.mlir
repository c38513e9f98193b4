// RUN: tilework opt %s -p dce

// What has no effect and no user goes.

// CHECK-LABEL: tt.func public @chain(
// CHECK-NEXT: tt.return
tt.func public @chain(%x: i32) {
  %a = arith.addi %x, %x : i32
  %b = arith.muli %a, %a : i32
  tt.return
}

// CHECK-LABEL: tt.func public @load(
// CHECK-NEXT: tt.return
tt.func public @load(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1) {
  %a = tt.load %p : tensor<8x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @loop(
// CHECK-NEXT: tt.return
tt.func public @loop(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c1) -> (i32)  : i32 {
    %s = arith.addi %a, %a : i32
    scf.yield %s : i32
  }
  tt.return
}

// CHECK-LABEL: tt.func public @effects_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.print "x" {hex = false, isSigned = array<i32: 1>} : %x : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.atomic_rmw fadd, relaxed, gpu, %p, %[[A]] : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: tt.return
tt.func public @effects_stay(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1, %x: i32) {
  %a = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
  tt.print "x" {hex = false, isSigned = array<i32: 1>} : %x : i32
  %t = tt.atomic_rmw fadd, relaxed, gpu, %p, %a : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> tensor<8xf32>
  tt.return
}
