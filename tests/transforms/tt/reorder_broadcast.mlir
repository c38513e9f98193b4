// RUN: tilework opt %s -p triton-reorder-broadcast

// Repetition moved behind computation.

// CHECK-LABEL: tt.func public @splats(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %n, %m : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %[[A]] : i32 -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32xi32>
tt.func public @splats(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %u = tt.splat %m : i32 -> tensor<16x32xi32>
  %r = arith.addi %s, %u : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @splat_and_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %n, %[[A]] : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %[[B]] : i32 -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x32xi32>
tt.func public @splat_and_constant(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %u = arith.constant dense<4> : tensor<16x32xi32>
  %r = arith.addi %s, %u : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @splat_and_cast(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.extsi %n : i32 to i64
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %[[A]] : i64 -> tensor<16x32xi64>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32xi64>
tt.func public @splat_and_cast(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi64> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %r = arith.extsi %s : tensor<16x32xi32> to tensor<16x32xi64>
  tt.return %r : tensor<16x32xi64>
}

// CHECK-LABEL: tt.func public @splat_of_pointer(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.addptr %p, %n : !tt.ptr<i32>, i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %[[A]] : !tt.ptr<i32> -> tensor<16x32x!tt.ptr<i32>>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32x!tt.ptr<i32>>
tt.func public @splat_of_pointer(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32x!tt.ptr<i32>> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %u = tt.splat %p : !tt.ptr<i32> -> tensor<16x32x!tt.ptr<i32>>
  %r = tt.addptr %u, %s : tensor<16x32x!tt.ptr<i32>>, tensor<16x32xi32>
  tt.return %r : tensor<16x32x!tt.ptr<i32>>
}

// CHECK-LABEL: tt.func public @function_of_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = math.exp %f : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %[[A]] : f32 -> tensor<16x32xf32>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32xf32>
tt.func public @function_of_splat(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xf32> {
  %u = tt.splat %f : f32 -> tensor<16x32xf32>
  %r = math.exp %u : tensor<16x32xf32>
  tt.return %r : tensor<16x32xf32>
}

// CHECK-LABEL: tt.func public @broadcast_and_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x1xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %a, %[[A]] : tensor<16x1xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.broadcast %[[B]] : tensor<16x1xi32> -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x32xi32>
tt.func public @broadcast_and_splat(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %w = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %r = arith.muli %w, %s : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @broadcast_and_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<4> : tensor<16x1xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %a, %[[A]] : tensor<16x1xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.broadcast %[[B]] : tensor<16x1xi32> -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x32xi32>
tt.func public @broadcast_and_constant(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %w = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
  %k = arith.constant dense<4> : tensor<16x32xi32>
  %r = arith.muli %w, %k : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @mixed_element_types(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x1xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.cmpi slt, %a, %[[A]] : tensor<16x1xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x1xi32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.select %[[B]], %a, %[[C]] : tensor<16x1xi1>, tensor<16x1xi32>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.broadcast %[[D]] : tensor<16x1xi32> -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[E]] : tensor<16x32xi32>
tt.func public @mixed_element_types(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %w = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %c = arith.cmpi slt, %w, %s : tensor<16x32xi32>
  %r = arith.select %c, %w, %s : tensor<16x32xi1>, tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @chain(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %n, %[[A]] : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x1xi32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.muli %a, %[[C]] : tensor<16x1xi32>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.splat %[[B]] : i32 -> tensor<16x1xi32>
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addi %[[D]], %[[E]] : tensor<16x1xi32>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.broadcast %[[F]] : tensor<16x1xi32> -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[G]] : tensor<16x32xi32>
tt.func public @chain(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %k = arith.constant dense<4> : tensor<16x32xi32>
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %w = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
  %u = arith.addi %s, %k : tensor<16x32xi32>
  %v = arith.muli %w, %s : tensor<16x32xi32>
  %r = arith.addi %v, %u : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @different_broadcasts_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.broadcast %b : tensor<1x32xi32> -> tensor<16x32xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %[[A]], %[[B]] : tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x32xi32>
tt.func public @different_broadcasts_stay(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %w = tt.broadcast %a : tensor<16x1xi32> -> tensor<16x32xi32>
  %v = tt.broadcast %b : tensor<1x32xi32> -> tensor<16x32xi32>
  %r = arith.muli %w, %v : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @argument_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x32xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %t, %[[A]] : tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32xi32>
tt.func public @argument_stays(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %r = arith.muli %t, %s : tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}

// CHECK-LABEL: tt.func public @elements_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %n : i32 -> tensor<2x2xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addi %[[B]], %[[A]] : tensor<2x2xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<2x2xi32>
tt.func public @elements_stay(%n: i32) -> tensor<2x2xi32> {
  %e = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %s = tt.splat %n : i32 -> tensor<2x2xi32>
  %r = arith.addi %e, %s : tensor<2x2xi32>
  tt.return %r : tensor<2x2xi32>
}

// CHECK-LABEL: tt.func public @assembly_with_effects_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %n : i32 -> tensor<16x32xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.elementwise_inline_asm "mov.u32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %[[A]] : tensor<16x32xi32> -> tensor<16x32xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<16x32xi32>
tt.func public @assembly_with_effects_stays(%a: tensor<16x1xi32>, %b: tensor<1x32xi32>, %n: i32, %m: i32, %t: tensor<16x32xi32>, %p: !tt.ptr<i32>, %f: f32) -> tensor<16x32xi32> {
  %s = tt.splat %n : i32 -> tensor<16x32xi32>
  %r = tt.elementwise_inline_asm "mov.u32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %s : tensor<16x32xi32> -> tensor<16x32xi32>
  tt.return %r : tensor<16x32xi32>
}
