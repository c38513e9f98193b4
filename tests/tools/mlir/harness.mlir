// RUN: tilework opt %s -canonicalize | filecheck %s
// RUN: tilework opt %s -p canonicalize --mlir-use-nameloc-as-prefix | filecheck %s --check-prefix=SECOND
// RUN: not tilework opt %s \
// RUN:   -p no-such-pass 2>&1 | filecheck %s --check-prefix=WRONG

// CHECK-LABEL: tt.func public @f
// CHECK-NOT: arith.addi
// CHECK: %[[SUM:.*]] = arith.constant 3 : i32
// CHECK-NEXT: tt.return %[[SUM]] : i32
// SECOND: tt.func public @f
// WRONG: no pass is called `no-such-pass`
tt.func public @f() -> i32 {
  %a = arith.constant 1 : i32
  %b = arith.constant 2 : i32
  %c = arith.addi %a, %b : i32
  tt.return %c : i32
}
