// RUN: tilework opt %s -p canonicalize

// Integers, comparisons and selects.

// CHECK-LABEL: tt.func public @add_zero(
// CHECK-NEXT: tt.return %x : i32
tt.func public @add_zero(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.addi %x, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @constant_moves_right(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 3 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @constant_moves_right(%x: i32, %y: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %r = arith.addi %c3, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @add_of_difference(
// CHECK-NEXT: tt.return %x : i32
tt.func public @add_of_difference(%x: i32, %y: i32) -> i32 {
  %d = arith.subi %x, %y : i32
  %r = arith.addi %d, %y : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @sub_self(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @sub_self(%x: i32, %y: i32) -> i32 {
  %r = arith.subi %x, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @sub_of_sum(
// CHECK-NEXT: tt.return %x : i32
tt.func public @sub_of_sum(%x: i32, %y: i32) -> i32 {
  %s = arith.addi %x, %y : i32
  %r = arith.subi %s, %y : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @mul_one(
// CHECK-NEXT: tt.return %x : i32
tt.func public @mul_one(%x: i32, %y: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %r = arith.muli %x, %c1 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @mul_zero(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @mul_zero(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.muli %x, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @div_one(
// CHECK-NEXT: tt.return %x : i32
tt.func public @div_one(%x: i32, %y: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %r = arith.divsi %x, %c1 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @rem_one(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @rem_one(%x: i32, %y: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %r = arith.remui %x, %c1 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @shift_zero(
// CHECK-NEXT: tt.return %x : i32
tt.func public @shift_zero(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.shrsi %x, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @and_zero(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @and_zero(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.andi %x, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @and_ones(
// CHECK-NEXT: tt.return %x : i32
tt.func public @and_ones(%x: i32, %y: i32) -> i32 {
  %cm1 = arith.constant -1 : i32
  %r = arith.andi %x, %cm1 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @and_self(
// CHECK-NEXT: tt.return %x : i32
tt.func public @and_self(%x: i32, %y: i32) -> i32 {
  %r = arith.andi %x, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @and_nested(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.andi %x, %y : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @and_nested(%x: i32, %y: i32) -> i32 {
  %n = arith.andi %x, %y : i32
  %r = arith.andi %x, %n : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @or_zero(
// CHECK-NEXT: tt.return %x : i32
tt.func public @or_zero(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.ori %x, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @or_not(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant -1 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @or_not(%x: i32, %y: i32) -> i32 {
  %cm1 = arith.constant -1 : i32
  %n = arith.xori %x, %cm1 : i32
  %r = arith.ori %x, %n : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @xor_self(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @xor_self(%x: i32, %y: i32) -> i32 {
  %r = arith.xori %x, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @xor_twice(
// CHECK-NEXT: tt.return %x : i32
tt.func public @xor_twice(%x: i32, %y: i32) -> i32 {
  %n = arith.xori %x, %y : i32
  %r = arith.xori %n, %y : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @max_self(
// CHECK-NEXT: tt.return %x : i32
tt.func public @max_self(%x: i32, %y: i32) -> i32 {
  %r = arith.maxsi %x, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @min_of_smallest(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @min_of_smallest(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.minui %x, %c0 : i32
  tt.return %r : i32
}

// (6 - 7) * (7 / -2) = 3
// CHECK-LABEL: tt.func public @evaluate(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 3 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @evaluate(%x: i32, %y: i32) -> i32 {
  %c6 = arith.constant 6 : i32
  %c7 = arith.constant 7 : i32
  %cm2 = arith.constant -2 : i32
  %s = arith.subi %c6, %c7 : i32
  %q = arith.divsi %c7, %cm2 : i32
  %r = arith.muli %s, %q : i32
  tt.return %r : i32
}

// modulo 2**32
// CHECK-LABEL: tt.func public @wraps(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant -2 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @wraps(%x: i32, %y: i32) -> i32 {
  %c = arith.constant 2147483647 : i32
  %r = arith.addi %c, %c : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @evaluate_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<42> : tensor<4xi32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4xi32>
tt.func public @evaluate_splat() -> tensor<4xi32> {
  %a = arith.constant dense<6> : tensor<4xi32>
  %b = arith.constant dense<7> : tensor<4xi32>
  %r = arith.muli %a, %b : tensor<4xi32>
  tt.return %r : tensor<4xi32>
}

// CHECK-LABEL: tt.func public @chain_add(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 7 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @chain_add(%x: i32, %y: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %s = arith.addi %x, %c3 : i32
  %r = arith.addi %s, %c4 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @chain_sub(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 7 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.subi %[[A]], %x : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @chain_sub(%x: i32, %y: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %s = arith.subi %x, %c3 : i32
  %r = arith.subi %c4, %s : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @chain_mul(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 12 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @chain_mul(%x: i32, %y: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %s = arith.muli %x, %c3 : i32
  %r = arith.muli %s, %c4 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @add_negated(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.subi %y, %x : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @add_negated(%x: i32, %y: i32) -> i32 {
  %cm1 = arith.constant -1 : i32
  %n = arith.muli %x, %cm1 : i32
  %r = arith.addi %n, %y : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @chain_of_tensors_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<3> : tensor<4xi32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant dense<4> : tensor<4xi32>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.addi %x, %[[A]] : tensor<4xi32>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addi %[[C]], %[[B]] : tensor<4xi32>
// CHECK-NEXT: tt.return %[[D]] : tensor<4xi32>
tt.func public @chain_of_tensors_stays(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c3 = arith.constant dense<3> : tensor<4xi32>
  %c4 = arith.constant dense<4> : tensor<4xi32>
  %s = arith.addi %x, %c3 : tensor<4xi32>
  %r = arith.addi %s, %c4 : tensor<4xi32>
  tt.return %r : tensor<4xi32>
}

// CHECK-LABEL: tt.func public @division_by_zero_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.divsi %[[A]], %[[B]] : i32
// CHECK-NEXT: tt.return %[[C]] : i32
tt.func public @division_by_zero_stays(%x: i32, %y: i32) -> i32 {
  %c4 = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %r = arith.divsi %c4, %c0 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @wide_shift_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 40 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.shli %[[A]], %[[B]] : i32
// CHECK-NEXT: tt.return %[[C]] : i32
tt.func public @wide_shift_stays(%x: i32, %y: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %c40 = arith.constant 40 : i32
  %r = arith.shli %c1, %c40 : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @zero_over_x_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.divsi %[[A]], %x : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @zero_over_x_stays(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = arith.divsi %c0, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @compare_self(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant false
// CHECK-NEXT: tt.return %[[A]], %[[B]] : i1, i1
tt.func public @compare_self(%x: i32, %y: i32, %p: i1, %q: i1) -> (i1, i1) {
  %a = arith.cmpi sle, %x, %x : i32
  %b = arith.cmpi ult, %x, %x : i32
  tt.return %a, %b : i1, i1
}

// -1 is the largest unsigned number
// CHECK-LABEL: tt.func public @compare_constants(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant false
// CHECK-NEXT: tt.return %[[A]], %[[B]] : i1, i1
tt.func public @compare_constants() -> (i1, i1) {
  %a = arith.constant -1 : i32
  %b = arith.constant 1 : i32
  %s = arith.cmpi slt, %a, %b : i32
  %u = arith.cmpi ult, %a, %b : i32
  tt.return %s, %u : i1, i1
}

// CHECK-LABEL: tt.func public @compare_swaps(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 3 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.cmpi sgt, %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i1
tt.func public @compare_swaps(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %a = arith.constant 3 : i32
  %s = arith.cmpi slt, %a, %x : i32
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @compare_extended(
// CHECK-NEXT: tt.return %p : i1
tt.func public @compare_extended(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %a = arith.constant 0 : i32
  %e = arith.extui %p : i1 to i32
  %s = arith.cmpi ne, %e, %a : i32
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @not_of_compare(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpi sge, %x, %y : i32
// CHECK-NEXT: tt.return %[[A]] : i1
tt.func public @not_of_compare(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %t = arith.constant true
  %e = arith.cmpi slt, %x, %y : i32
  %s = arith.xori %e, %t : i1
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @compare_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.cmpi uge, %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i1
tt.func public @compare_stays(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %a = arith.constant 0 : i32
  %s = arith.cmpi uge, %x, %a : i32
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @select_known(
// CHECK-NEXT: tt.return %x : i32
tt.func public @select_known(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %t = arith.constant true
  %s = arith.select %t, %x, %y : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_same(
// CHECK-NEXT: tt.return %x : i32
tt.func public @select_same(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %s = arith.select %p, %x, %x : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_true_false(
// CHECK-NEXT: tt.return %p : i1
tt.func public @select_true_false(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %t = arith.constant true
  %f = arith.constant false
  %s = arith.select %p, %t, %f : i1
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @select_false_true(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.xori %p, %[[A]] : i1
// CHECK-NEXT: tt.return %[[B]] : i1
tt.func public @select_false_true(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %t = arith.constant true
  %f = arith.constant false
  %s = arith.select %p, %f, %t : i1
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @select_one_zero(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.extui %p : i1 to i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @select_one_zero(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %t = arith.constant 1 : i32
  %f = arith.constant 0 : i32
  %s = arith.select %p, %t, %f : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_not(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.select %p, %y, %x : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @select_not(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %t = arith.constant true
  %n = arith.xori %p, %t : i1
  %s = arith.select %n, %x, %y : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_nested(
// CHECK-NEXT: tt.return %x : i32
tt.func public @select_nested(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %n = arith.select %p, %x, %y : i32
  %s = arith.select %p, %n, %x : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_equal(
// CHECK-NEXT: tt.return %y : i32
tt.func public @select_equal(%x: i32, %y: i32, %p: i1, %q: i1) -> i32 {
  %n = arith.cmpi eq, %x, %y : i32
  %s = arith.select %n, %x, %y : i32
  tt.return %s : i32
}

// CHECK-LABEL: tt.func public @select_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant false
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.select %p, %q, %[[A]] : i1
// CHECK-NEXT: tt.return %[[B]] : i1
tt.func public @select_stays(%x: i32, %y: i32, %p: i1, %q: i1) -> i1 {
  %f = arith.constant false
  %s = arith.select %p, %q, %f : i1
  tt.return %s : i1
}

// CHECK-LABEL: tt.func public @and_of_extended(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.andi %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.extsi %[[A]] : i32 to i64
// CHECK-NEXT: tt.return %[[B]] : i64
tt.func public @and_of_extended(%x: i32, %y: i32, %p: i1, %q: i1) -> i64 {
  %a = arith.extsi %x : i32 to i64
  %b = arith.extsi %y : i32 to i64
  %s = arith.andi %a, %b : i64
  tt.return %s : i64
}

// CHECK-LABEL: tt.func public @dead(
// CHECK-NEXT: tt.return
tt.func public @dead(%x: i32) {
  %a = arith.addi %x, %x : i32
  %b = arith.muli %a, %a : i32
  tt.return
}

// the later one comes first
// CHECK-LABEL: tt.func public @constants_are_shared(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 9 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 5 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %x, %[[B]] : i32
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addi %[[C]], %[[B]] : i32
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.divsi %[[D]], %[[A]] : i32
// CHECK-NEXT: tt.store %p, %[[E]] : !tt.ptr<i32>
// CHECK-NEXT: tt.return
tt.func public @constants_are_shared(%x: i32, %p: !tt.ptr<i32>) {
  %a = arith.constant 5 : i32
  %m = arith.muli %x, %a : i32
  %b = arith.constant 5 : i32
  %c = arith.constant 9 : i32
  %n = arith.addi %m, %b : i32
  %o = arith.divsi %n, %c : i32
  tt.store %p, %o : !tt.ptr<i32>
  tt.return
}

// Either operand of the inner one, on either side.
// CHECK-LABEL: tt.func public @xor_takes_back_first_left(
// CHECK-NEXT: tt.return %y : i32
tt.func public @xor_takes_back_first_left(%x: i32, %y: i32) -> i32 {
  %s = arith.xori %x, %y : i32
  %r = arith.xori %s, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @xor_takes_back_first_right(
// CHECK-NEXT: tt.return %y : i32
tt.func public @xor_takes_back_first_right(%x: i32, %y: i32) -> i32 {
  %s = arith.xori %x, %y : i32
  %r = arith.xori %x, %s : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @xor_takes_back_second_left(
// CHECK-NEXT: tt.return %y : i32
tt.func public @xor_takes_back_second_left(%x: i32, %y: i32) -> i32 {
  %s = arith.xori %y, %x : i32
  %r = arith.xori %s, %x : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @xor_takes_back_second_right(
// CHECK-NEXT: tt.return %y : i32
tt.func public @xor_takes_back_second_right(%x: i32, %y: i32) -> i32 {
  %s = arith.xori %y, %x : i32
  %r = arith.xori %x, %s : i32
  tt.return %r : i32
}
