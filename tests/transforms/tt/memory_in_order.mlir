// RUN: tilework opt %s -p tt-memory-in-order

// A barrier in front of what an access before it must not be overtaken by, one for all of a loop, and in a loop that writes.
tt.func @ordered(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %p : !tt.ptr<f32>
  %y = tt.load %p : !tt.ptr<f32>
  %z = arith.addf %x, %y : f32
  tt.store %p, %z : !tt.ptr<f32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (f32) : i32 {
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.addf %s, %v : f32
    scf.yield %w : f32
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.addf %v, %sum : f32
    tt.store %p, %w : !tt.ptr<f32>
  }
  tt.return
}
// CHECK-LABEL: tt.func @ordered
// CHECK: tt.load
// CHECK-NEXT: tt.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.store
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: scf.for
// CHECK-NEXT: tt.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: ttg.barrier all
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.store

// A kernel that has several returns: what the blocks before have done holds in the next one.
tt.func @returns_early(%p: !tt.ptr<f32>, %stop: i1, %x: f32) {
  tt.store %p, %x : !tt.ptr<f32>
  cf.cond_br %stop, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  %y = tt.load %p : !tt.ptr<f32>
  tt.print "y" {hex = false, isSigned = array<i32: 0>} : %y : f32
  tt.return
}
// CHECK-LABEL: tt.func @returns_early
// CHECK: tt.store
// CHECK: tt.return
// CHECK: ttg.barrier all
// CHECK-NEXT: tt.load

// A barrier for shared memory orders nothing in global memory.
tt.func @shared_only(%p: !tt.ptr<f32>, %x: f32) {
  tt.store %p, %x : !tt.ptr<f32>
  ttg.barrier local
  %y = tt.load %p : !tt.ptr<f32>
  ttg.barrier global_read|global_write
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}
// CHECK-LABEL: tt.func @shared_only
// CHECK-NEXT: tt.store
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.load
// CHECK-NEXT: ttg.barrier global_read|global_write
// CHECK-NEXT: tt.store
// CHECK-NEXT: tt.return
