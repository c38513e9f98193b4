// RUN: tilework opt %s -p inline

// Calls replaced by what they call.

// CHECK-LABEL: tt.func public @one_block(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.mulf %x, %x : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.mulf %[[A]], %[[A]] : f32
// CHECK-NEXT: tt.return %[[B]] : f32
tt.func public @one_block(%x: f32) -> f32 {
  %y = tt.call @square(%x) : (f32) -> f32
  %r = tt.call @square(%y) : (f32) -> f32
  tt.return %r : f32
}

// CHECK-NOT: @square
tt.func private @square(%a: f32) -> f32 {
  %0 = arith.mulf %a, %a : f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func public @in_a_loop_and_a_region(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[D:[^ :,)]+]] = scf.for %[[E:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[F:[^ :,)]+]] = %[[C]]) -> (f32)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)]+]] = "tt.reduce"(%x) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[H:[^ :,)]+]]: f32, %[[I:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[J:[^ :,)]+]] = arith.addf %[[H]], %[[I]] : f32
// CHECK-NEXT: tt.reduce.return %[[J]] : f32
// CHECK-NEXT: }) : (tensor<8xf32>) -> f32
// CHECK-NEXT: %[[K:[^ :,)]+]] = arith.addf %[[F]], %[[G]] : f32
// CHECK-NEXT: scf.yield %[[K]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[D]] : f32
tt.func public @in_a_loop_and_a_region(%x: tensor<8xf32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (f32)  : i32 {
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%u: f32, %v: f32):
      %w = tt.call @add(%u, %v) : (f32, f32) -> f32
      tt.reduce.return %w : f32
    }) : (tensor<8xf32>) -> f32
    %t = tt.call @add(%a, %s) : (f32, f32) -> f32
    scf.yield %t : f32
  }
  tt.return %r : f32
}

// The block behind the return is dead; one block is left.
// CHECK-NOT: @add
tt.func private @add(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  tt.return %0 : f32
^bb1:
  %1 = ub.poison : f32
  tt.return %1 : f32
}

// Several blocks are spliced in where a block may branch.
// CHECK-LABEL: tt.func public @several_blocks(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpi sgt, %x, %y : i32
// CHECK-NEXT: cf.cond_br %[[A]], ^bb2(%x : i32), ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: cf.br ^bb2(%[[B]] : i32)
// CHECK-NEXT: ^bb2(%[[C:[^ :,)]+]]: i32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.muli %[[C]], %[[C]] : i32
// CHECK-NEXT: tt.return %[[D]] : i32
tt.func public @several_blocks(%x: i32, %y: i32) -> i32 {
  %a = tt.call @early(%x, %y) : (i32, i32) -> i32
  %r = arith.muli %a, %a : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func private @early(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpi sgt, %a, %b : i32
// CHECK-NEXT: cf.cond_br %[[A]], ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: tt.return %a : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %a, %b : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func private @early(%a: i32, %b: i32) -> i32 {
  %0 = arith.cmpi sgt, %a, %b : i32
  cf.cond_br %0, ^bb1, ^bb2
^bb1:
  tt.return %a : i32
^bb2:
  %1 = arith.addi %a, %b : i32
  tt.return %1 : i32
}

// In a loop body no block can branch: the call stays.
// CHECK-LABEL: tt.func public @several_blocks_in_a_loop_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = scf.for %[[D:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[E:[^ :,)]+]] = %x) -> (i32)  : i32 {
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.call @early(%[[E]], %[[D]]) : (i32, i32) -> i32
// CHECK-NEXT: scf.yield %[[F]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[C]] : i32
tt.func public @several_blocks_in_a_loop_stay(%x: i32, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (i32)  : i32 {
    %s = tt.call @early(%a, %i) : (i32, i32) -> i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @noinline_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.call @kept(%x) : (f32) -> f32
// CHECK-NEXT: tt.return %[[A]] : f32
tt.func public @noinline_stays(%x: f32) -> f32 {
  %r = tt.call @kept(%x) : (f32) -> f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func private @kept(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.mulf %a, %a : f32
// CHECK-NEXT: tt.return %[[A]] : f32
tt.func private @kept(%a: f32) -> f32 attributes {noinline = true} {
  %0 = arith.mulf %a, %a : f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func public @nested_calls(
// CHECK-NEXT: %[[A:[^ :,)]+]] = math.exp %x : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addf %[[A]], %x : f32
// CHECK-NEXT: tt.return %[[B]] : f32
tt.func public @nested_calls(%x: f32) -> f32 {
  %r = tt.call @outer(%x) : (f32) -> f32
  tt.return %r : f32
}

// CHECK-NOT: @outer
tt.func private @outer(%a: f32) -> f32 {
  %0 = tt.call @inner(%a) : (f32) -> f32
  %1 = arith.addf %0, %a : f32
  tt.return %1 : f32
}

// CHECK-NOT: @inner
tt.func private @inner(%a: f32) -> f32 {
  %0 = math.exp %a : f32
  tt.return %0 : f32
}
