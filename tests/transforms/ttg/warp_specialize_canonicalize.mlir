// RUN: tilework opt %s -p 'sccp,canonicalize'

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Unused and repeated captures and unused results go; the constant of a partition stays in it.
// CHECK-LABEL: @captures(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.warp_specialize(%p, %[[A]])
// CHECK-NEXT: default {
// CHECK-NEXT: ttg.warp_yield %n : i32
// CHECK-NEXT: }
// CHECK-NEXT: partition0(%[[C:[^ :,)]+]]: !tt.ptr<f32>, %[[D:[^ :,)]+]]: i32) num_warps(2) {
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.addptr %[[C]], %[[D]] : !tt.ptr<f32>, i32
// CHECK-NEXT: tt.store %[[F]], %[[E]] : !tt.ptr<f32>
// CHECK-NEXT: tt.store %[[C]], %[[E]] : !tt.ptr<f32>
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : (!tt.ptr<f32>, i32) -> i32
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.sitofp %[[B]] : i32 to f32
// CHECK-NEXT: tt.store %p, %[[G]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
tt.func public @captures(%p: !tt.ptr<f32>, %n: i32) {
  %c4 = arith.constant 4 : i32
  %r:2 = ttg.warp_specialize(%p, %n, %p, %c4)
  default {
    %d = arith.addi %n, %n : i32
    ttg.warp_yield %d, %n : i32, i32
  }
  partition0(%a: !tt.ptr<f32>, %b: i32, %c: !tt.ptr<f32>, %e: i32) num_warps(2) {
    %q = tt.addptr %a, %e : !tt.ptr<f32>, i32
    %z = arith.constant 0.0 : f32
    tt.store %q, %z : !tt.ptr<f32>
    tt.store %c, %z : !tt.ptr<f32>
    ttg.warp_return
  } : (!tt.ptr<f32>, i32, !tt.ptr<f32>, i32) -> (i32, i32)
  %f = arith.sitofp %r#1 : i32 to f32
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// Each region that is isolated has constants of its own, those used last first, as in Triton 3.7.
// CHECK-LABEL: @order(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 7 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 9 : i32
// CHECK-NEXT: tt.store %p, %[[B]] : !tt.ptr<i32>
// CHECK: partition0(%[[C:[^ :,)]+]]: !tt.ptr<i32>, %[[D:[^ :,)]+]]: i32) num_warps(4) {
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant 11 : i32
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.constant 3 : i32
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.constant 5 : i32
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.muli %[[D]], %[[G]] : i32
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.addi %[[H]], %[[F]] : i32
// CHECK-NEXT: %[[J:[^ :,)]+]] = arith.xori %[[I]], %[[E]] : i32
// CHECK-NEXT: %[[K:[^ :,)]+]] = arith.ori %[[J]], %[[F]] : i32
tt.func public @order(%p: !tt.ptr<i32>, %n: i32) {
  %c9 = arith.constant 9 : i32
  tt.store %p, %c9 : !tt.ptr<i32>
  ttg.warp_specialize(%p, %n)
  default {
    %c7 = arith.constant 7 : i32
    %x = arith.addi %n, %c7 : i32
    tt.store %p, %x : !tt.ptr<i32>
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<i32>, %m: i32) num_warps(4) {
    %a = arith.constant 5 : i32
    %x = arith.muli %m, %a : i32
    %b = arith.constant 3 : i32
    %y = arith.addi %x, %b : i32
    %c = arith.constant 11 : i32
    %z = arith.xori %y, %c : i32
    %d = arith.constant 3 : i32
    %w = arith.ori %z, %d : i32
    tt.store %q, %w : !tt.ptr<i32>
    ttg.warp_return
  } : (!tt.ptr<i32>, i32) -> ()
  tt.return
}

// What only a dead op of the partition used.
// CHECK-LABEL: @dead_use(
// CHECK-NEXT: ttg.warp_specialize(%p)
// CHECK-NEXT: default {
// CHECK-NEXT: ttg.warp_yield
// CHECK-NEXT: }
// CHECK-NEXT: partition0(%[[A:[^ :,)]+]]: !tt.ptr<f32>) num_warps(2) {
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: tt.store %[[A]], %[[B]] : !tt.ptr<f32>
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : (!tt.ptr<f32>) -> ()
// CHECK-NEXT: tt.return
tt.func public @dead_use(%p: !tt.ptr<f32>, %n: i32) {
  ttg.warp_specialize(%p, %n)
  default {
    ttg.warp_yield
  }
  partition0(%a: !tt.ptr<f32>, %b: i32) num_warps(2) {
    %q = arith.addi %b, %b : i32
    %z = arith.constant 0.0 : f32
    tt.store %a, %z : !tt.ptr<f32>
    ttg.warp_return
  } : (!tt.ptr<f32>, i32) -> ()
  tt.return
}

// All are needed.
// CHECK-LABEL: @needed(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.warp_specialize(%p)
// CHECK-NEXT: default {
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.get_program_id x : i32
// CHECK-NEXT: ttg.warp_yield %[[B]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: partition0(%[[C:[^ :,)]+]]: !tt.ptr<f32>) num_warps(1) {
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: tt.store %[[C]], %[[D]] : !tt.ptr<f32>
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : (!tt.ptr<f32>) -> i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @needed(%p: !tt.ptr<f32>) -> i32 {
  %r = ttg.warp_specialize(%p)
  default {
    %n = tt.get_program_id x : i32
    ttg.warp_yield %n : i32
  }
  partition0(%a: !tt.ptr<f32>) num_warps(1) {
    %z = arith.constant 0.0 : f32
    tt.store %a, %z : !tt.ptr<f32>
    ttg.warp_return
  } : (!tt.ptr<f32>) -> i32
  tt.return %r : i32
}
}
