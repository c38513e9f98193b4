// RUN: tilework opt %s -p triton-licm

// Loads leave with a mask that asks for a first iteration, and take what follows from them along; a division stays.
// CHECK-LABEL: tt.func public @loads
// CHECK:       %[[G0:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK-NEXT:  %[[S0:.*]] = tt.splat %[[G0]] : i1 -> tensor<16xi1>
// CHECK-NEXT:  %[[M0:.*]] = arith.andi %[[S0]], %m : tensor<16xi1>
// CHECK-NEXT:  %v = tt.load %q, %[[M0]], %z cacheModifier = cg : tensor<16x!tt.ptr<f32>>
// CHECK-NEXT:  %[[G1:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK-NEXT:  %[[S1:.*]] = tt.splat %[[G1]] : i1 -> tensor<16xi1>
// CHECK-NEXT:  %v2 = tt.load %q, %[[S1]] : tensor<16x!tt.ptr<f32>>
// CHECK-NEXT:  %[[G2:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK-NEXT:  %v3 = tt.load %sp, %[[G2]] : !tt.ptr<f32>
// CHECK-NEXT:  %n = arith.addf %v, %v2 : tensor<16xf32>
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    arith.addf %acc, %n
// CHECK-NEXT:    arith.divsi %ub, %st : i32
tt.func public @loads(%q: tensor<16x!tt.ptr<f32>>, %m: tensor<16xi1>, %lb: i32, %ub: i32, %st: i32, %z: tensor<16xf32>, %sp: !tt.ptr<f32>) -> (tensor<16xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %k = %lb to %ub step %st iter_args(%acc = %z, %t = %zero) -> (tensor<16xf32>, f32) : i32 {
    %v = tt.load %q, %m, %z cacheModifier = cg : tensor<16x!tt.ptr<f32>>
    %v2 = tt.load %q : tensor<16x!tt.ptr<f32>>
    %v3 = tt.load %sp : !tt.ptr<f32>
    %n = arith.addf %v, %v2 : tensor<16xf32>
    %a = arith.addf %acc, %n : tensor<16xf32>
    %d = arith.divsi %ub, %st : i32
    %df = arith.sitofp %d : i32 to f32
    %b = arith.addf %df, %v3 : f32
    scf.yield %a, %b : tensor<16xf32>, f32
  }
  tt.return %r#0, %r#1 : tensor<16xf32>, f32
}

// Out of the inner loop as far as the operands allow; the load depends on the outer counter through its mask.
// CHECK-LABEL: tt.func public @nested
// CHECK-NEXT:  %c = arith.addi %ub, %st : i32
// CHECK-NEXT:  scf.for %k
// CHECK-NEXT:    %[[G:.*]] = arith.cmpi slt, %lb, %k : i32
// CHECK-NEXT:    %v = tt.load %p, %[[G]] : !tt.ptr<i32>
// CHECK-NEXT:    scf.for %l
// CHECK-NEXT:      arith.addi %b, %v : i32
tt.func public @nested(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %st: i32) -> i32 {
  %r = scf.for %k = %lb to %ub step %st iter_args(%a = %lb) -> (i32) : i32 {
    %q = scf.for %l = %lb to %k step %st iter_args(%b = %a) -> (i32) : i32 {
      %v = tt.load %p : !tt.ptr<i32>
      %c = arith.addi %ub, %st : i32
      %e = arith.addi %b, %v : i32
      %f = arith.addi %e, %c : i32
      scf.yield %f : i32
    }
    scf.yield %q : i32
  }
  tt.return %r : i32
}

// A branch of pure ops moves whole; one that loads does not.
// CHECK-LABEL: tt.func public @branches
// CHECK-NEXT:  %x = scf.if %c -> (i32) {
// CHECK:       scf.for
// CHECK-NEXT:    %y = scf.if %c -> (i32) {
// CHECK-NEXT:      tt.load
tt.func public @branches(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %c: i1) -> i32 {
  %r = scf.for %k = %lb to %ub step %lb iter_args(%acc = %lb) -> (i32) : i32 {
    %x = scf.if %c -> (i32) {
      %m = arith.muli %ub, %ub : i32
      scf.yield %m : i32
    } else {
      scf.yield %ub : i32
    }
    %y = scf.if %c -> (i32) {
      %v = tt.load %p : !tt.ptr<i32>
      scf.yield %v : i32
    } else {
      scf.yield %ub : i32
    }
    %a = arith.addi %acc, %x : i32
    %b = arith.addi %a, %y : i32
    scf.yield %b : i32
  }
  tt.return %r : i32
}

// Pure ops leave both parts of a while loop; the load stays.
// CHECK-LABEL: tt.func public @while
// CHECK-NEXT:  %x = arith.addi %ub, %ub : i32
// CHECK-NEXT:  %y = arith.muli %ub, %ub : i32
// CHECK-NEXT:  scf.while
// CHECK-NEXT:    tt.load %p : !tt.ptr<i32>
tt.func public @while(%p: !tt.ptr<i32>, %lb: i32, %ub: i32) -> i32 {
  %r = scf.while (%a = %lb) : (i32) -> i32 {
    %x = arith.addi %ub, %ub : i32
    %v = tt.load %p : !tt.ptr<i32>
    %s = arith.addi %x, %v : i32
    %c = arith.cmpi slt, %a, %s : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%a: i32):
    %y = arith.muli %ub, %ub : i32
    %b = arith.addi %a, %y : i32
    scf.yield %b : i32
  }
  tt.return %r : i32
}

// No load leaves a loop that writes, prints, asserts or reads volatile memory.
// CHECK-LABEL: tt.func public @effects
// CHECK-COUNT-4: scf.for %{{.*}} {{[{]}}
// CHECK-NOT:   tt.load %p, %
tt.func public @effects(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %lb: i32, %ub: i32, %c: i1) {
  scf.for %k = %lb to %ub step %lb : i32 {
    %v = tt.load %p : !tt.ptr<i32>
    tt.store %q, %v : !tt.ptr<i32>
  }
  scf.for %k = %lb to %ub step %lb : i32 {
    %v = tt.load %p : !tt.ptr<i32>
    tt.print "v" {hex = false, isSigned = array<i32: 1>} : %v : i32
  }
  scf.for %k = %lb to %ub step %lb : i32 {
    %v = tt.load %p : !tt.ptr<i32>
    %t = arith.cmpi slt, %v, %k : i32
    tt.assert %t, "small" : i1
  }
  %r = scf.for %k = %lb to %ub step %lb iter_args(%a = %lb) -> (i32) : i32 {
    %v = tt.load %p : !tt.ptr<i32>
    %w = tt.load %q {isVolatile = true} : !tt.ptr<i32>
    %s = arith.addi %v, %w : i32
    scf.yield %s : i32
  }
  tt.return
}

// CHECK-LABEL: tt.func public @disabled
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    arith.muli
tt.func public @disabled(%lb: i32, %ub: i32) -> i32 {
  %r = scf.for %k = %lb to %ub step %lb iter_args(%acc = %lb) -> (i32) : i32 {
    %x = arith.muli %ub, %ub : i32
    %b = arith.addi %acc, %x : i32
    scf.yield %b : i32
  } {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
  tt.return %r : i32
}

// A load through a block pointer has no mask to guard it with.
// CHECK-LABEL: tt.func public @block_pointer
// CHECK:       scf.for
// CHECK-NEXT:    tt.load
tt.func public @block_pointer(%p: !tt.ptr<tensor<8xf32>>, %lb: i32, %ub: i32, %z: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.for %k = %lb to %ub step %lb iter_args(%acc = %z) -> (tensor<8xf32>) : i32 {
    %v = tt.load %p : !tt.ptr<tensor<8xf32>>
    scf.yield %v : tensor<8xf32>
  }
  tt.return %r : tensor<8xf32>
}
