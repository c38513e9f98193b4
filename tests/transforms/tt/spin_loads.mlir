// RUN: tilework opt %s -p tt-spin-loads -p canonicalize -p cse

// The flag is read again in every round; what is loaded before is not what is loaded behind the loop.
// CHECK-LABEL: tt.func public @condition
// CHECK-NEXT:  %c0 = arith.constant 0 : i32
// CHECK-NEXT:  %a = tt.load %p : !tt.ptr<i32>
// CHECK-NEXT:  scf.while
// CHECK-NEXT:    %v = tt.load %p {isVolatile = true} : !tt.ptr<i32>
// CHECK:       %b = tt.load %p : !tt.ptr<i32>
// CHECK-NEXT:  arith.addi %a, %b
tt.func public @condition(%p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %a = tt.load %p : !tt.ptr<i32>
  scf.while : () -> () {
    %v = tt.load %p : !tt.ptr<i32>
    %go = arith.cmpi eq, %v, %c0 : i32
    scf.condition(%go)
  } do {
    scf.yield
  }
  %b = tt.load %p : !tt.ptr<i32>
  %s = arith.addi %a, %b : i32
  tt.return %s : i32
}

// Through what the loop carries, an address that is computed in it, and a branch; a load that decides nothing stays plain.
// CHECK-LABEL: tt.func public @carried
// CHECK:       scf.while
// CHECK:         scf.if
// CHECK:           tt.load %{{.*}} {isVolatile = true} : !tt.ptr<i32>
// CHECK:         %w = tt.load %p : !tt.ptr<i32>
// CHECK-NEXT:    tt.store
tt.func public @carried(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %r = scf.while (%go = %true) : (i1) -> i1 {
    scf.condition(%go) %go : i1
  } do {
  ^bb0(%x: i1):
    %v = scf.if %c -> (i32) {
      %at = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
      %l = tt.load %at : !tt.ptr<i32>
      scf.yield %l : i32
    } else {
      scf.yield %c0 : i32
    }
    %w = tt.load %p : !tt.ptr<i32>
    tt.store %q, %w : !tt.ptr<i32>
    %n = arith.cmpi eq, %v, %c0 : i32
    scf.yield %n : i1
  }
  tt.return
}

// A search reads another address in every iteration: it waits for nothing.
// CHECK-LABEL: tt.func public @search
// CHECK-NOT:   isVolatile
tt.func public @search(%p: !tt.ptr<i32>, %k: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%i = %c0) : (i32) -> i32 {
    %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
    %v = tt.load %at : !tt.ptr<i32>
    %go = arith.cmpi ne, %v, %k : i32
    scf.condition(%go) %i : i32
  } do {
  ^bb0(%j: i32):
    %n = arith.addi %j, %c1 : i32
    scf.yield %n : i32
  }
  tt.return %r : i32
}
