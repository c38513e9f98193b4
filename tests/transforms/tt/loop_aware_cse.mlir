// RUN: tilework opt %s -p triton-loop-aware-cse

// %b follows %a; %c starts elsewhere and %d moves by another amount.
// CHECK-LABEL: tt.func public @equal
// CHECK:       %[[R:.*]]:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %c = %g, %d = %f) -> (i32, i32, i32)
// CHECK-NEXT:    %[[T:.*]] = arith.addi %a, %n : i32
// CHECK-NEXT:    %[[U:.*]] = arith.addi %c, %n : i32
// CHECK-NEXT:    %[[V:.*]] = arith.addi %d, %k : i32
// CHECK-NEXT:    scf.yield %[[T]], %[[U]], %[[V]] : i32, i32, i32
// CHECK-NEXT:  } {tt.num_stages = 3 : i32}
// CHECK-NEXT:  tt.return %[[R]]#0, %[[R]]#0, %[[R]]#1, %[[R]]#2 : i32, i32, i32, i32
tt.func public @equal(%n: i32, %f: i32, %g: i32) -> (i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:4 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %b = %f, %c = %g, %d = %f) -> (i32, i32, i32, i32) : i32 {
    %t = arith.addi %a, %n : i32
    %s = arith.addi %b, %n : i32
    %u = arith.addi %c, %n : i32
    %v = arith.addi %d, %k : i32
    scf.yield %t, %s, %u, %v : i32, i32, i32, i32
  } {tt.num_stages = 3 : i32}
  tt.return %r#0, %r#1, %r#2, %r#3 : i32, i32, i32, i32
}

// %a equals %b if %c equals %d, and the reverse.
// CHECK-LABEL: tt.func public @mutual
// CHECK:       %[[R:.*]]:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %c = %g) -> (i32, i32)
// CHECK:       tt.return %[[R]]#0, %[[R]]#0, %[[R]]#1, %[[R]]#1 : i32, i32, i32, i32
tt.func public @mutual(%n: i32, %f: i32, %g: i32) -> (i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:4 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %b = %f, %c = %g, %d = %g) -> (i32, i32, i32, i32) : i32 {
    %t = arith.addi %c, %n : i32
    %s = arith.addi %d, %n : i32
    %u = arith.addi %a, %k : i32
    %v = arith.addi %b, %k : i32
    scf.yield %t, %s, %u, %v : i32, i32, i32, i32
  }
  tt.return %r#0, %r#1, %r#2, %r#3 : i32, i32, i32, i32
}

// Crosswise, and a value that is only passed on.
// CHECK-LABEL: tt.func public @swapped
// CHECK:       %[[R:.*]] = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f) -> (i32)
// CHECK-NEXT:    %[[U:.*]] = arith.addi %a, %g : i32
// CHECK-NEXT:    scf.yield %[[U]] : i32
// CHECK:       tt.return %[[R]], %[[R]], %g : i32, i32, i32
tt.func public @swapped(%n: i32, %f: i32, %g: i32) -> (i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %b = %f, %d = %g) -> (i32, i32, i32) : i32 {
    %u = arith.addi %a, %d : i32
    %v = arith.addi %b, %d : i32
    scf.yield %v, %u, %d : i32, i32, i32
  }
  tt.return %r#0, %r#1, %r#2 : i32, i32, i32
}

// Two loads are two values: another program may write in between.
// CHECK-LABEL: tt.func public @effects
// CHECK:       scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %b = %f) -> (i32, i32)
tt.func public @effects(%p: !tt.ptr<i32>, %n: i32, %f: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f, %b = %f) -> (i32, i32) : i32 {
    %t = tt.load %p : !tt.ptr<i32>
    tt.store %p, %k : !tt.ptr<i32>
    %s = tt.load %p : !tt.ptr<i32>
    scf.yield %t, %s : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}
