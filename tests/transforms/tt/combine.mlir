// RUN: tilework opt %s -p triton-combine

// Ops fused into one.

// CHECK-LABEL: tt.func public @dot_then_add(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %b, %x, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xf32>
tt.func public @dot_then_add(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %z, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %d, %x : tensor<16x16xf32>
  tt.return %r : tensor<16x16xf32>
}

// CHECK-LABEL: tt.func public @add_of_dot(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %b, %x : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xf32>
tt.func public @add_of_dot(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant dense<-0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %z : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %x, %d : tensor<16x16xf32>
  tt.return %r : tensor<16x16xf32>
}

// CHECK-LABEL: tt.func public @dots_in_their_order(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.dot %a, %b, %[[A]] : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.dot %b, %a, %[[B]] : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x16xf32>
tt.func public @dots_in_their_order(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %z : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %e = tt.dot %b, %a, %z : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %d, %e : tensor<16x16xf32>
  tt.return %r : tensor<16x16xf32>
}

// CHECK-LABEL: tt.func public @integer_dot(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %a, %x : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xi32>
tt.func public @integer_dot(%a: tensor<16x16xi8>, %x: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %z = arith.constant dense<0> : tensor<16x16xi32>
  %d = tt.dot %a, %a, %z : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  %r = arith.addi %x, %d : tensor<16x16xi32>
  tt.return %r : tensor<16x16xi32>
}

// CHECK-LABEL: tt.func public @dot_with_two_users_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.dot %a, %b, %[[A]] : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addf %x, %[[B]] : tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[C]], %[[B]] : tensor<16x16xf32>, tensor<16x16xf32>
tt.func public @dot_with_two_users_stays(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %z : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %x, %d : tensor<16x16xf32>
  tt.return %r, %d : tensor<16x16xf32>, tensor<16x16xf32>
}

// CHECK-LABEL: tt.func public @dot_from_one_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<16x16xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.dot %a, %b, %[[A]] : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addf %x, %[[B]] : tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x16xf32>
tt.func public @dot_from_one_stays(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %o = arith.constant dense<1.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %o : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %x, %d : tensor<16x16xf32>
  tt.return %r : tensor<16x16xf32>
}

// CHECK-LABEL: tt.func public @imprecise_dot_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.dot %a, %b, %[[A]] {maxNumImpreciseAcc = 32 : i32} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addf %x, %[[B]] : tensor<16x16xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<16x16xf32>
tt.func public @imprecise_dot_stays(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %z {maxNumImpreciseAcc = 32 : i32} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = arith.addf %x, %d : tensor<16x16xf32>
  tt.return %r : tensor<16x16xf32>
}

// the hint of the second is kept
// CHECK-LABEL: tt.func public @constant_offsets(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<16> : tensor<8xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.addptr %p, %[[A]] {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<8x!tt.ptr<f32>>
tt.func public @constant_offsets(%p: tensor<8x!tt.ptr<f32>>, %s: !tt.ptr<f32>, %t: tensor<8xi32>, %i: i64, %j: i64) -> tensor<8x!tt.ptr<f32>> {
  %c8 = arith.constant dense<8> : tensor<8xi32>
  %a = tt.addptr %p, %c8 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %r = tt.addptr %a, %c8 {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %r : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func public @long_offsets(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %i, %j : i64
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.addptr %s, %[[A]] : !tt.ptr<f32>, i64
// CHECK-NEXT: tt.return %[[B]] : !tt.ptr<f32>
tt.func public @long_offsets(%p: tensor<8x!tt.ptr<f32>>, %s: !tt.ptr<f32>, %t: tensor<8xi32>, %i: i64, %j: i64) -> !tt.ptr<f32> {
  %a = tt.addptr %s, %i : !tt.ptr<f32>, i64
  %r = tt.addptr %a, %j : !tt.ptr<f32>, i64
  tt.return %r : !tt.ptr<f32>
}

// the sum could wrap
// CHECK-LABEL: tt.func public @variable_offset_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<8> : tensor<8xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.addptr %p, %t : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.addptr %[[B]], %[[A]] : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
// CHECK-NEXT: tt.return %[[C]] : tensor<8x!tt.ptr<f32>>
tt.func public @variable_offset_stays(%p: tensor<8x!tt.ptr<f32>>, %s: !tt.ptr<f32>, %t: tensor<8xi32>, %i: i64, %j: i64) -> tensor<8x!tt.ptr<f32>> {
  %c8 = arith.constant dense<8> : tensor<8xi32>
  %a = tt.addptr %p, %t : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %r = tt.addptr %a, %c8 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %r : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func public @overflow_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<8> : tensor<8xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant dense<2147483647> : tensor<8xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.addptr %p, %[[B]] : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.addptr %[[C]], %[[A]] : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
// CHECK-NEXT: tt.return %[[D]] : tensor<8x!tt.ptr<f32>>
tt.func public @overflow_stays(%p: tensor<8x!tt.ptr<f32>>, %s: !tt.ptr<f32>, %t: tensor<8xi32>, %i: i64, %j: i64) -> tensor<8x!tt.ptr<f32>> {
  %c8 = arith.constant dense<8> : tensor<8xi32>
  %big = arith.constant dense<2147483647> : tensor<8xi32>
  %a = tt.addptr %p, %big : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %r = tt.addptr %a, %c8 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %r : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func public @select_of_load(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %c : i1 -> tensor<8xi1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p, %[[A]], %o cacheModifier = ca : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.return %[[B]] : tensor<8xf32>
tt.func public @select_of_load(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>, %f: tensor<8xf32>, %c: i1, %d: i1) -> tensor<8xf32> {
  %m = tt.splat %c : i1 -> tensor<8xi1>
  %l = tt.load %p, %m, %f cacheModifier = ca : tensor<8x!tt.ptr<f32>>
  %r = arith.select %c, %l, %o : tensor<8xf32>
  tt.return %r : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @select_of_load_without_other(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %c : i1 -> tensor<8xi1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p, %[[A]], %o : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.return %[[B]] : tensor<8xf32>
tt.func public @select_of_load_without_other(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>, %f: tensor<8xf32>, %c: i1, %d: i1) -> tensor<8xf32> {
  %m = tt.splat %c : i1 -> tensor<8xi1>
  %l = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  %r = arith.select %c, %l, %o : tensor<8xf32>
  tt.return %r : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @select_on_another_condition_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %c : i1 -> tensor<8xi1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %p, %[[A]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.select %d, %[[B]], %o : tensor<8xf32>
// CHECK-NEXT: tt.return %[[C]] : tensor<8xf32>
tt.func public @select_on_another_condition_stays(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>, %f: tensor<8xf32>, %c: i1, %d: i1) -> tensor<8xf32> {
  %m = tt.splat %c : i1 -> tensor<8xi1>
  %l = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  %r = arith.select %d, %l, %o : tensor<8xf32>
  tt.return %r : tensor<8xf32>
}

// CHECK-LABEL: tt.func public @sum_of_products(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.dot %x, %y, %[[A]], inputPrecision = tf32 : tensor<32x16xf32> * tensor<16x64xf32> -> tensor<32x64xf32>
// CHECK-NEXT: tt.return %[[B]] : tensor<32x64xf32>
tt.func public @sum_of_products(%x: tensor<32x16xf32>, %y: tensor<16x64xf32>) -> tensor<32x64xf32> {
  %a = tt.expand_dims %x {axis = 2 : i32} : tensor<32x16xf32> -> tensor<32x16x1xf32>
  %b = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
  %c = tt.broadcast %a : tensor<32x16x1xf32> -> tensor<32x16x64xf32>
  %d = tt.broadcast %b : tensor<1x16x64xf32> -> tensor<32x16x64xf32>
  %e = arith.mulf %c, %d : tensor<32x16x64xf32>
  %r = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<32x16x64xf32>) -> tensor<32x64xf32>
  tt.return %r : tensor<32x64xf32>
}

// CHECK-LABEL: tt.func public @sum_of_few_products_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.expand_dims %x {axis = 2 : i32} : tensor<8x16xf32> -> tensor<8x16x1xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.broadcast %[[A]] : tensor<8x16x1xf32> -> tensor<8x16x64xf32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.broadcast %[[B]] : tensor<1x16x64xf32> -> tensor<8x16x64xf32>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.mulf %[[C]], %[[D]] : tensor<8x16x64xf32>
// CHECK-NEXT: %[[F:[^ :,)]+]] = "tt.reduce"(%[[E]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[G:[^ :,)]+]]: f32, %[[H:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.addf %[[G]], %[[H]] : f32
// CHECK-NEXT: tt.reduce.return %[[I]] : f32
// CHECK-NEXT: }) : (tensor<8x16x64xf32>) -> tensor<8x64xf32>
// CHECK-NEXT: tt.return %[[F]] : tensor<8x64xf32>
tt.func public @sum_of_few_products_stays(%x: tensor<8x16xf32>, %y: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %a = tt.expand_dims %x {axis = 2 : i32} : tensor<8x16xf32> -> tensor<8x16x1xf32>
  %b = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
  %c = tt.broadcast %a : tensor<8x16x1xf32> -> tensor<8x16x64xf32>
  %d = tt.broadcast %b : tensor<1x16x64xf32> -> tensor<8x16x64xf32>
  %e = arith.mulf %c, %d : tensor<8x16x64xf32>
  %r = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<8x16x64xf32>) -> tensor<8x64xf32>
  tt.return %r : tensor<8x64xf32>
}

// CHECK-LABEL: tt.func public @only_the_left_side_is_a_matrix(
// CHECK-NOT: tt.dot
// CHECK: "tt.reduce"
tt.func public @only_the_left_side_is_a_matrix(%x: tensor<32x16xf32>, %y: tensor<32x16x64xf32>) -> tensor<32x64xf32> {
  %a = tt.expand_dims %x {axis = 2 : i32} : tensor<32x16xf32> -> tensor<32x16x1xf32>
  %b = tt.broadcast %a : tensor<32x16x1xf32> -> tensor<32x16x64xf32>
  %e = arith.mulf %b, %y : tensor<32x16x64xf32>
  %r = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<32x16x64xf32>) -> tensor<32x64xf32>
  tt.return %r : tensor<32x64xf32>
}

// CHECK-LABEL: tt.func public @only_the_right_side_is_a_matrix(
// CHECK-NOT: tt.dot
// CHECK: "tt.reduce"
tt.func public @only_the_right_side_is_a_matrix(%x: tensor<32x16x64xf32>, %y: tensor<16x64xf32>) -> tensor<32x64xf32> {
  %a = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
  %b = tt.broadcast %a : tensor<1x16x64xf32> -> tensor<32x16x64xf32>
  %e = arith.mulf %x, %b : tensor<32x16x64xf32>
  %r = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<32x16x64xf32>) -> tensor<32x64xf32>
  tt.return %r : tensor<32x64xf32>
}

// CHECK-LABEL: tt.func public @max_of_products_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.expand_dims %x {axis = 2 : i32} : tensor<32x16xf32> -> tensor<32x16x1xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.broadcast %[[A]] : tensor<32x16x1xf32> -> tensor<32x16x64xf32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.broadcast %[[B]] : tensor<1x16x64xf32> -> tensor<32x16x64xf32>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.mulf %[[C]], %[[D]] : tensor<32x16x64xf32>
// CHECK-NEXT: %[[F:[^ :,)]+]] = "tt.reduce"(%[[E]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[G:[^ :,)]+]]: f32, %[[H:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.maxnumf %[[G]], %[[H]] : f32
// CHECK-NEXT: tt.reduce.return %[[I]] : f32
// CHECK-NEXT: }) : (tensor<32x16x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: tt.return %[[F]] : tensor<32x64xf32>
tt.func public @max_of_products_stays(%x: tensor<32x16xf32>, %y: tensor<16x64xf32>) -> tensor<32x64xf32> {
  %a = tt.expand_dims %x {axis = 2 : i32} : tensor<32x16xf32> -> tensor<32x16x1xf32>
  %b = tt.expand_dims %y {axis = 0 : i32} : tensor<16x64xf32> -> tensor<1x16x64xf32>
  %c = tt.broadcast %a : tensor<32x16x1xf32> -> tensor<32x16x64xf32>
  %d = tt.broadcast %b : tensor<1x16x64xf32> -> tensor<32x16x64xf32>
  %e = arith.mulf %c, %d : tensor<32x16x64xf32>
  %r = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<32x16x64xf32>) -> tensor<32x64xf32>
  tt.return %r : tensor<32x64xf32>
}

// CHECK-LABEL: tt.func public @reshape_before_reduce(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %x allow_reorder : tensor<32x16xf32> -> tensor<512xf32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = "tt.reduce"(%[[A]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[C:[^ :,)]+]]: f32, %[[D:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: tt.reduce.return %[[E]] : f32
// CHECK-NEXT: }) : (tensor<512xf32>) -> f32
// CHECK-NEXT: tt.return %[[B]] : f32
tt.func public @reshape_before_reduce(%x: tensor<32x16xf32>) -> f32 {
  %a = tt.reshape %x : tensor<32x16xf32> -> tensor<512xf32>
  %r = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<512xf32>) -> f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func public @reshape_before_argmax(
// CHECK-NEXT: tt.reshape %x : tensor<32x16xf32> -> tensor<512xf32>
// CHECK-NEXT: tt.reshape %i : tensor<32x16xi32> -> tensor<512xi32>
tt.func public @reshape_before_argmax(%x: tensor<32x16xf32>, %i: tensor<32x16xi32>) -> i32 {
  %a = tt.reshape %x : tensor<32x16xf32> -> tensor<512xf32>
  %b = tt.reshape %i allow_reorder : tensor<32x16xi32> -> tensor<512xi32>
  %r, %s = "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %j: i32, %v: f32, %k: i32):
    %w = arith.cmpf ogt, %u, %v : f32
    %m = arith.select %w, %u, %v : f32
    %n = arith.select %w, %j, %k : i32
    tt.reduce.return %m, %n : f32, i32
  }) : (tensor<512xf32>, tensor<512xi32>) -> (f32, i32)
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @reshape_before_masked_histogram(
// CHECK-NEXT: tt.reshape %x : tensor<16x4xi32> -> tensor<64xi32>
tt.func public @reshape_before_masked_histogram(%x: tensor<16x4xi32>, %m: tensor<64xi1>) -> tensor<16xi32> {
  %a = tt.reshape %x : tensor<16x4xi32> -> tensor<64xi32>
  %r = tt.histogram %a, %m : tensor<64xi32> -> tensor<16xi32>
  tt.return %r : tensor<16xi32>
}

// CHECK-LABEL: tt.func public @reshape_before_histogram(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %x allow_reorder : tensor<16x4xi32> -> tensor<64xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.histogram %[[A]] : tensor<64xi32> -> tensor<16xi32>
// CHECK-NEXT: tt.return %[[B]] : tensor<16xi32>
tt.func public @reshape_before_histogram(%x: tensor<16x4xi32>) -> tensor<16xi32> {
  %a = tt.reshape %x : tensor<16x4xi32> -> tensor<64xi32>
  %r = tt.histogram %a : tensor<64xi32> -> tensor<16xi32>
  tt.return %r : tensor<16xi32>
}

// CHECK-LABEL: tt.func public @reshape_with_another_user_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.reshape %x : tensor<16x4xi32> -> tensor<64xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.histogram %[[A]] : tensor<64xi32> -> tensor<16xi32>
// CHECK-NEXT: tt.return %[[B]], %[[A]] : tensor<16xi32>, tensor<64xi32>
tt.func public @reshape_with_another_user_stays(%x: tensor<16x4xi32>) -> (tensor<16xi32>, tensor<64xi32>) {
  %a = tt.reshape %x : tensor<16x4xi32> -> tensor<64xi32>
  %r = tt.histogram %a : tensor<64xi32> -> tensor<16xi32>
  tt.return %r, %a : tensor<16xi32>, tensor<64xi32>
}

// CHECK-LABEL: tt.func public @descriptor_load_drops_unit_dims(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<64x32xf16>
// CHECK-NEXT: tt.return %[[A]] : tensor<64x32xf16>
tt.func public @descriptor_load_drops_unit_dims(%d: !tt.tensordesc<tensor<1x1x64x32xf16>>, %i: i32) -> tensor<64x32xf16> {
  %l = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<1x1x64x32xf16>
  %r = tt.reshape %l : tensor<1x1x64x32xf16> -> tensor<64x32xf16>
  tt.return %r : tensor<64x32xf16>
}

// CHECK-LABEL: tt.func public @descriptor_load_of_other_shape_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<1x1x64x32xf16>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.reshape %[[A]] : tensor<1x1x64x32xf16> -> tensor<32x64xf16>
// CHECK-NEXT: tt.return %[[B]] : tensor<32x64xf16>
tt.func public @descriptor_load_of_other_shape_stays(%d: !tt.tensordesc<tensor<1x1x64x32xf16>>, %i: i32) -> tensor<32x64xf16> {
  %l = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<1x1x64x32xf16>
  %r = tt.reshape %l : tensor<1x1x64x32xf16> -> tensor<32x64xf16>
  tt.return %r : tensor<32x64xf16>
}

// CHECK-LABEL: tt.func public @descriptor_load_with_two_users_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<1x1x64x32xf16>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.reshape %[[A]] : tensor<1x1x64x32xf16> -> tensor<64x32xf16>
// CHECK-NEXT: tt.return %[[B]], %[[A]] : tensor<64x32xf16>, tensor<1x1x64x32xf16>
tt.func public @descriptor_load_with_two_users_stays(%d: !tt.tensordesc<tensor<1x1x64x32xf16>>, %i: i32) -> (tensor<64x32xf16>, tensor<1x1x64x32xf16>) {
  %l = tt.descriptor_load %d[%i, %i, %i, %i] : !tt.tensordesc<tensor<1x1x64x32xf16>> -> tensor<1x1x64x32xf16>
  %r = tt.reshape %l : tensor<1x1x64x32xf16> -> tensor<64x32xf16>
  tt.return %r, %l : tensor<64x32xf16>, tensor<1x1x64x32xf16>
}
