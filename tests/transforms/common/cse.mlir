// RUN: tilework opt %s -p cse

// Common subexpressions.

// CHECK-LABEL: tt.func public @same_op(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %[[A]], %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @same_op(%x: i32, %y: i32, %c: i1) -> i32 {
  %a = arith.addi %x, %y : i32
  %b = arith.addi %x, %y : i32
  %r = arith.muli %a, %b : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @operands_of_a_sum_commute(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %[[A]], %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @operands_of_a_sum_commute(%x: i32, %y: i32, %c: i1) -> i32 {
  %a = arith.addi %x, %y : i32
  %b = arith.addi %y, %x : i32
  %r = arith.muli %a, %b : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @operands_of_a_difference_do_not(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.subi %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.subi %y, %x : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %[[A]], %[[B]] : i32
// CHECK-NEXT: tt.return %[[C]] : i32
tt.func public @operands_of_a_difference_do_not(%x: i32, %y: i32, %c: i1) -> i32 {
  %a = arith.subi %x, %y : i32
  %b = arith.subi %y, %x : i32
  %r = arith.muli %a, %b : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @different_attributes_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpi slt, %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.cmpi ult, %x, %y : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT: tt.return %[[C]] : i1
tt.func public @different_attributes_stay(%x: i32, %y: i32, %c: i1) -> i1 {
  %a = arith.cmpi slt, %x, %y : i32
  %b = arith.cmpi ult, %x, %y : i32
  %r = arith.andi %a, %b : i1
  tt.return %r : i1
}

// CHECK-LABEL: tt.func public @hints_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.muli %x, %y {tt.divisibility = dense<16> : tensor<1xi32>} : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %x, %y : i32
// CHECK-NEXT: tt.return %[[A]], %[[B]] : i32, i32
tt.func public @hints_stay(%x: i32, %y: i32, %c: i1) -> (i32, i32) {
  %a = arith.muli %x, %y {tt.divisibility = dense<16> : tensor<1xi32>} : i32
  %b = arith.muli %x, %y : i32
  tt.return %a, %b : i32, i32
}

// CHECK-LABEL: tt.func public @into_a_region(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %s, %[[A]] : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @into_a_region(%x: i32, %y: i32, %c: i1, %s: !tt.ptr<i32>) -> i32 {
  %a = arith.addi %x, %y : i32
  scf.if %c {
    %b = arith.addi %x, %y : i32
    tt.store %s, %b : !tt.ptr<i32>
  }
  tt.return %a : i32
}

// CHECK-LABEL: tt.func public @not_out_of_a_region(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: tt.store %s, %[[A]] : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @not_out_of_a_region(%x: i32, %y: i32, %c: i1, %s: !tt.ptr<i32>) -> i32 {
  scf.if %c {
    %b = arith.addi %x, %y : i32
    tt.store %s, %b : !tt.ptr<i32>
  }
  %a = arith.addi %x, %y : i32
  tt.return %a : i32
}

// CHECK-LABEL: tt.func public @unused(
// CHECK-NEXT: tt.return
tt.func public @unused(%x: i32, %y: i32, %c: i1) {
  %a = arith.addi %x, %y : i32
  tt.return
}

// CHECK-LABEL: tt.func public @loads(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addf %[[A]], %[[A]] : tensor<8xf32>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func public @loads(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1) {
  %a = tt.load %p : tensor<8x!tt.ptr<f32>>
  %b = tt.load %p : tensor<8x!tt.ptr<f32>>
  %r = arith.addf %a, %b : tensor<8xf32>
  tt.store %q, %r : tensor<8x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @loads_around_a_store_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.store %q, %[[A]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func public @loads_around_a_store_stay(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1) {
  %a = tt.load %p : tensor<8x!tt.ptr<f32>>
  tt.store %q, %a : tensor<8x!tt.ptr<f32>>
  %b = tt.load %p : tensor<8x!tt.ptr<f32>>
  tt.store %q, %b : tensor<8x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @loads_of_different_blocks_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : tensor<8xf32>
tt.func public @loads_of_different_blocks_stay(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1) -> tensor<8xf32> {
  %a = tt.load %p : tensor<8x!tt.ptr<f32>>
  scf.if %c {
    %b = tt.load %p : tensor<8x!tt.ptr<f32>>
    tt.store %q, %b : tensor<8x!tt.ptr<f32>>
  }
  tt.return %a : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @volatile_loads_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addf %[[A]], %[[B]] : tensor<8xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<8xf32>
tt.func public @volatile_loads_stay(%p: tensor<8x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %c: i1) -> tensor<8xf32> {
  %a = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
  %b = tt.load %p {isVolatile = true} : tensor<8x!tt.ptr<f32>>
  %r = arith.addf %a, %b : tensor<8xf32>
  tt.return %r : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @regions_are_compared(
// CHECK-NEXT: %[[A:[^ :,)]+]] = "tt.reduce"(%t) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[B:[^ :,)]+]]: f32, %[[C:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addf %[[B]], %[[C]] : f32
// CHECK-NEXT: tt.reduce.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<8xf32>) -> f32
// CHECK-NEXT: %[[E:[^ :,)]+]] = "tt.reduce"(%t) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[B]]: f32, %[[C]]: f32):
// CHECK-NEXT: %[[D]] = arith.mulf %[[B]], %[[C]] : f32
// CHECK-NEXT: tt.reduce.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<8xf32>) -> f32
// CHECK-NEXT: tt.return %[[A]], %[[A]], %[[E]] : f32, f32, f32
tt.func public @regions_are_compared(%t: tensor<8xf32>) -> (f32, f32, f32) {
  %a = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8xf32>) -> f32
  %b = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8xf32>) -> f32
  %d = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.mulf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8xf32>) -> f32
  tt.return %a, %b, %d : f32, f32, f32
}

// The first block dominates the others; ^bb1 and ^bb2 do not dominate ^bb3.
// CHECK-LABEL: tt.func public @blocks(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %[[A]], %y : i32
// CHECK-NEXT: tt.store %p, %[[B]] : !tt.ptr<i32>
// CHECK-NEXT: cf.br ^bb3(%[[A]] : i32)
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %[[A]], %y : i32
// CHECK-NEXT: tt.store %p, %[[C]] : !tt.ptr<i32>
// CHECK-NEXT: cf.br ^bb3(%y : i32)
// CHECK-NEXT: ^bb3(%[[D:[^ :,)]+]]: i32):
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.muli %[[A]], %y : i32
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addi %[[E]], %[[D]] : i32
// CHECK-NEXT: tt.return %[[F]] : i32
tt.func public @blocks(%x: i32, %y: i32, %c: i1, %p: !tt.ptr<i32>) -> i32 {
  %a = arith.addi %x, %y : i32
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %b = arith.addi %x, %y : i32
  %d = arith.muli %b, %y : i32
  tt.store %p, %d : !tt.ptr<i32>
  cf.br ^bb3(%a : i32)
^bb2:
  %e = arith.muli %a, %y : i32
  tt.store %p, %e : !tt.ptr<i32>
  cf.br ^bb3(%y : i32)
^bb3(%f: i32):
  %g = arith.muli %a, %y : i32
  %h = arith.addi %g, %f : i32
  tt.return %h : i32
}
