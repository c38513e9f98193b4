// RUN: tilework opt %s --split-input-file -p 'tritongpu-fuse-nested-loops,canonicalize,cse'
// Prologue, body, epilogue; the options are those of the inner loop.
// CHECK-LABEL: tt.func @flatten(
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m, %c0_i32 : i32
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: scf.for %i = %c0_i32 to %n step %c1_i32  : i32 {
// CHECK-NEXT: tt.store %p, %i : !tt.ptr<i32>
// CHECK-NEXT: %e = arith.muli %i, %i : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.divui %c2147483647_i32, %[[V2]] : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = scf.for %arg3 = %c0_i64 to %[[V4]] step %[[V5]] iter_args(%arg4 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.subi %[[V4]], %arg3 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.minsi %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.trunci %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %arg4, %[[V3]] : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.muli %[[V9]], %[[V2]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.subi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V13:[0-9]+]]:2 = scf.for %arg5 = %c0_i32 to %[[V11]] step %c1_i32 iter_args(%arg6 = %c0_i32, %arg7 = %[[V12]]) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %arg6, %c0_i32 : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = scf.if %[[V14]] -> (i32) {
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: tt.store %p, %[[V20]] : !tt.ptr<i32>
// CHECK-NEXT: scf.yield %[[V20]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg7 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addi %[[V15]], %arg6 : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.cmpi eq, %arg6, %[[V16]] : i32
// CHECK-NEXT: scf.if %[[V17]] {
// CHECK-NEXT: %e = arith.muli %[[V15]], %[[V15]] : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.addi %arg6, %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.select %[[V17]], %c0_i32, %[[V18]] : i32
// CHECK-NEXT: scf.yield %[[V19]], %[[V15]] : i32, i32
// CHECK-NEXT: } {tt.num_stages = 4 : i32}
// CHECK-NEXT: scf.yield %[[V10]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @flatten(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
    scf.for %j = %c0 to %m step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    } {tt.num_stages = 4 : i32}
    %e = arith.muli %i, %i : i32
    tt.store %p, %e : !tt.ptr<i32>
  } {tt.flatten}
  tt.return
}
}

// -----

// Values carried by both loops, and one that the prologue computes for the others.
// CHECK-LABEL: tt.func @carried(
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %cst = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m, %c0_i32 : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = scf.if %[[V0]] -> (f32) {
// CHECK-NEXT: %r = scf.for %i = %c0_i32 to %n step %c1_i32 iter_args(%o = %x) -> (f32)  : i32 {
// CHECK-NEXT: %a = arith.addf %o, %x : f32
// CHECK-NEXT: %e = arith.mulf %a, %cst : f32
// CHECK-NEXT: scf.yield %e : f32
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: scf.yield %r : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.divui %c2147483647_i32, %[[V3]] : i32
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V2]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.extui %[[V4]] : i32 to i64
// CHECK-NEXT: %[[V7:[0-9]+]]:2 = scf.for %arg4 = %c0_i64 to %[[V5]] step %[[V6]] iter_args(%arg5 = %c0_i32, %arg6 = %x) -> (i32, f32)  : i64 {
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.subi %[[V5]], %arg4 : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.minsi %[[V8]], %[[V6]] : i64
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.trunci %[[V9]] : i64 to i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.addi %arg5, %[[V4]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.muli %[[V10]], %[[V3]] : i32
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.subi %arg5, %c1_i32 : i32
// CHECK-NEXT: %[[V14:[0-9]+]]:5 = scf.for %arg7 = %c0_i32 to %[[V12]] step %c1_i32 iter_args(%arg8 = %c0_i32, %arg9 = %[[V13]], %arg10 = %arg6, %arg11 = %cst, %arg12 = %cst) -> (i32, i32, f32, f32, f32)  : i32 {
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.cmpi eq, %arg8, %c0_i32 : i32
// CHECK-NEXT: %[[V16:[0-9]+]]:2 = scf.if %[[V15]] -> (f32, i32) {
// CHECK-NEXT: %[[V23:[0-9]+]] = arith.addi %arg9, %c1_i32 : i32
// CHECK-NEXT: %a = arith.addf %arg10, %x : f32
// CHECK-NEXT: scf.yield %a, %[[V23]] : f32, i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg12, %arg9 : f32, i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addf %arg11, %[[V16]]#0 : f32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.subi %[[V3]], %c1_i32 : i32
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.cmpi eq, %arg8, %[[V17]] : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = scf.if %[[V18]] -> (f32) {
// CHECK-NEXT: %e = arith.mulf %s, %[[V16]]#0 : f32
// CHECK-NEXT: scf.yield %e : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg10 : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.select %[[V18]], %cst, %s : f32
// CHECK-NEXT: %[[V21:[0-9]+]] = arith.addi %arg8, %c1_i32 : i32
// CHECK-NEXT: %[[V22:[0-9]+]] = arith.select %[[V18]], %c0_i32, %[[V21]] : i32
// CHECK-NEXT: scf.yield %[[V22]], %[[V16]]#1, %[[V19]], %[[V20]], %[[V16]]#0 : i32, i32, f32, f32, f32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V11]], %[[V14]]#2 : i32, f32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V7]]#1 : f32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V1]] : f32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @carried(%n: i32, %m: i32, %p: !tt.ptr<i32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %x) -> (f32) : i32 {
    %a = arith.addf %o, %x : f32
    %k = scf.for %j = %c0 to %m step %c1 iter_args(%q = %f0) -> (f32) : i32 {
      %s = arith.addf %q, %a : f32
      scf.yield %s : f32
    }
    %e = arith.mulf %k, %a : f32
    scf.yield %e : f32
  } {tt.flatten}
  tt.return %r : f32
}
}

// -----

// The inner loop is known to run.
// CHECK-LABEL: tt.func @constant_bounds(
// CHECK-NEXT: %c7_i32 = arith.constant 7 : i32
// CHECK-NEXT: %c268435455_i64 = arith.constant 268435455 : i64
// CHECK-NEXT: %c268435455_i32 = arith.constant 268435455 : i32
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c8_i32 = arith.constant 8 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extui %[[V0]] : i32 to i64
// CHECK-NEXT: %[[V2:[0-9]+]] = scf.for %arg3 = %c0_i64 to %[[V1]] step %c268435455_i64 iter_args(%arg4 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.subi %[[V1]], %arg3 : i64
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.minsi %[[V3]], %c268435455_i64 : i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.trunci %[[V4]] : i64 to i32
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.addi %arg4, %c268435455_i32 : i32
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.muli %[[V5]], %c8_i32 : i32
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.subi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V9:[0-9]+]]:2 = scf.for %arg5 = %c0_i32 to %[[V7]] step %c1_i32 iter_args(%arg6 = %c0_i32, %arg7 = %[[V8]]) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.cmpi eq, %arg6, %c0_i32 : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = scf.if %[[V10]] -> (i32) {
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: tt.store %p, %[[V15]] : !tt.ptr<i32>
// CHECK-NEXT: scf.yield %[[V15]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg7 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addi %[[V11]], %arg6 : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.cmpi eq, %arg6, %c7_i32 : i32
// CHECK-NEXT: scf.if %[[V12]] {
// CHECK-NEXT: %e = arith.muli %[[V11]], %[[V11]] : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.addi %arg6, %c1_i32 : i32
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.select %[[V12]], %c0_i32, %[[V13]] : i32
// CHECK-NEXT: scf.yield %[[V14]], %[[V11]] : i32, i32
// CHECK-NEXT: } {tt.num_stages = 4 : i32}
// CHECK-NEXT: scf.yield %[[V6]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @constant_bounds(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
    scf.for %j = %c0 to %c8 step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    } {tt.num_stages = 4 : i32}
    %e = arith.muli %i, %i : i32
    tt.store %p, %e : !tt.ptr<i32>
  } {tt.flatten}
  tt.return
}
}

// -----

// Nothing behind the inner loop.
// CHECK-LABEL: tt.func @no_epilogue(
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m, %c0_i32 : i32
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.divui %c2147483647_i32, %[[V2]] : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = scf.for %arg3 = %c0_i64 to %[[V4]] step %[[V5]] iter_args(%arg4 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.subi %[[V4]], %arg3 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.minsi %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.trunci %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %arg4, %[[V3]] : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.muli %[[V9]], %[[V2]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.subi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V13:[0-9]+]]:2 = scf.for %arg5 = %c0_i32 to %[[V11]] step %c1_i32 iter_args(%arg6 = %c0_i32, %arg7 = %[[V12]]) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %arg6, %c0_i32 : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = scf.if %[[V14]] -> (i32) {
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V20]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg7 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addi %[[V15]], %arg6 : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.cmpi eq, %arg6, %[[V16]] : i32
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.addi %arg6, %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.select %[[V17]], %c0_i32, %[[V18]] : i32
// CHECK-NEXT: scf.yield %[[V19]], %[[V15]] : i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V10]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_epilogue(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %m step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    }
  } {tt.flatten}
  tt.return
}
}

// -----

// The bound of the inner loop is computed in front of both.
// CHECK-LABEL: tt.func @hoisted_bounds(
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %m2 = arith.muli %m, %m : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m2, %c0_i32 : i32
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %m2, %c1_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.divui %c2147483647_i32, %[[V2]] : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = scf.for %arg3 = %c0_i64 to %[[V4]] step %[[V5]] iter_args(%arg4 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.subi %[[V4]], %arg3 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.minsi %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.trunci %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %arg4, %[[V3]] : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.muli %[[V9]], %[[V2]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.subi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V13:[0-9]+]]:2 = scf.for %arg5 = %c0_i32 to %[[V11]] step %c1_i32 iter_args(%arg6 = %c0_i32, %arg7 = %[[V12]]) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %arg6, %c0_i32 : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = scf.if %[[V14]] -> (i32) {
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V20]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg7 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addi %[[V15]], %arg6 : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.cmpi eq, %arg6, %[[V16]] : i32
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.addi %arg6, %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.select %[[V17]], %c0_i32, %[[V18]] : i32
// CHECK-NEXT: scf.yield %[[V19]], %[[V15]] : i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V10]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @hoisted_bounds(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %m2 = arith.muli %m, %m : i32
    scf.for %j = %c0 to %m2 step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    }
  } {tt.flatten}
  tt.return
}
}

// -----

// Options of the outer loop win; only the fused loop is specialized.
// CHECK-LABEL: tt.func @options(
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m, %c0_i32 : i32
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: scf.for %i = %c0_i32 to %n step %c1_i32  : i32 {
// CHECK-NEXT: tt.store %p, %i : !tt.ptr<i32>
// CHECK-NEXT: %e = arith.muli %i, %i : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: } {tt.disallow_acc_multi_buffer, tt.flatten, tt.num_stages = 7 : i32}
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.divui %c2147483647_i32, %[[V2]] : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = scf.for %arg3 = %c0_i64 to %[[V4]] step %[[V5]] iter_args(%arg4 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.subi %[[V4]], %arg3 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.minsi %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.trunci %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %arg4, %[[V3]] : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.muli %[[V9]], %[[V2]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.subi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V13:[0-9]+]]:2 = scf.for %arg5 = %c0_i32 to %[[V11]] step %c1_i32 iter_args(%arg6 = %c0_i32, %arg7 = %[[V12]]) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %arg6, %c0_i32 : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = scf.if %[[V14]] -> (i32) {
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: tt.store %p, %[[V20]] : !tt.ptr<i32>
// CHECK-NEXT: scf.yield %[[V20]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg7 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.addi %[[V15]], %arg6 : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.cmpi eq, %arg6, %[[V16]] : i32
// CHECK-NEXT: scf.if %[[V17]] {
// CHECK-NEXT: %e = arith.muli %[[V15]], %[[V15]] : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.addi %arg6, %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.select %[[V17]], %c0_i32, %[[V18]] : i32
// CHECK-NEXT: scf.yield %[[V19]], %[[V15]] : i32, i32
// CHECK-NEXT: } {tt.disallow_acc_multi_buffer, tt.num_stages = 7 : i32, tt.warp_specialize}
// CHECK-NEXT: scf.yield %[[V10]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @options(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
    scf.for %j = %c0 to %m step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    } {tt.num_stages = 4 : i32}
    %e = arith.muli %i, %i : i32
    tt.store %p, %e : !tt.ptr<i32>
  } {tt.disallow_acc_multi_buffer, tt.flatten, tt.num_stages = 7 : i32, tt.warp_specialize}
  tt.return
}
}

// -----

// What only the epilogue uses is computed there, unless it reads memory.
// CHECK-LABEL: tt.func @sunk(
// CHECK-NEXT: %cst = arith.constant dense<0.000000e+00> : tensor<128xf32, #blocked>
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c2147483647_i32 = arith.constant 2147483647 : i32
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.cmpi sle, %m, %c0_i32 : i32
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: scf.for %i = %c0_i32 to %n step %c1_i32  : i32 {
// CHECK-NEXT: %t = tt.load %pt : tensor<128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %x = arith.muli %i, %i : i32
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: tt.store %pt, %t : tensor<128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.divui %c2147483647_i32, %[[V2]] : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = scf.for %arg4 = %c0_i64 to %[[V4]] step %[[V5]] iter_args(%arg5 = %c0_i32) -> (i32)  : i64 {
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.subi %[[V4]], %arg4 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.minsi %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.trunci %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %arg5, %[[V3]] : i32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.muli %[[V9]], %[[V2]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.subi %arg5, %c1_i32 : i32
// CHECK-NEXT: %[[V13:[0-9]+]]:3 = scf.for %arg6 = %c0_i32 to %[[V11]] step %c1_i32 iter_args(%arg7 = %c0_i32, %arg8 = %[[V12]], %arg9 = %cst) -> (i32, i32, tensor<128xf32, #blocked>)  : i32 {
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.cmpi eq, %arg7, %c0_i32 : i32
// CHECK-NEXT: %[[V15:[0-9]+]]:2 = scf.if %[[V14]] -> (tensor<128xf32, #blocked>, i32) {
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg8, %c1_i32 : i32
// CHECK-NEXT: %t = tt.load %pt : tensor<128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %t, %[[V20]] : tensor<128xf32, #blocked>, i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg9, %arg8 : tensor<128xf32, #blocked>, i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %arg7 : !tt.ptr<i32>
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.cmpi eq, %arg7, %[[V16]] : i32
// CHECK-NEXT: scf.if %[[V17]] {
// CHECK-NEXT: %x = arith.muli %[[V15]]#1, %[[V15]]#1 : i32
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: tt.store %pt, %[[V15]]#0 : tensor<128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.addi %arg7, %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.select %[[V17]], %c0_i32, %[[V18]] : i32
// CHECK-NEXT: scf.yield %[[V19]], %[[V15]]#1, %[[V15]]#0 : i32, i32, tensor<128xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V10]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @sunk(%n: i32, %m: i32, %p: !tt.ptr<i32>, %pt: tensor<128x!tt.ptr<f32>, #b>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %t = tt.load %pt : tensor<128x!tt.ptr<f32>, #b>
    %x = arith.muli %i, %i : i32
    scf.for %j = %c0 to %m step %c1 : i32 {
      tt.store %p, %j : !tt.ptr<i32>
    }
    tt.store %p, %x : !tt.ptr<i32>
    tt.store %pt, %t : tensor<128x!tt.ptr<f32>, #b>
  } {tt.flatten}
  tt.return
}
}

// -----

// Without assuming that the inner loop runs; bounds and steps of i64.
// CHECK-LABEL: tt.func @always(
// CHECK-NEXT: %c1_i64 = arith.constant 1 : i64
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.subi %ubj, %lbj : i64
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.cmpi slt, %lbj, %ubj : i64
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.select %[[V1]], %[[V0]], %c0_i64 : i64
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.ceildivui %[[V2]], %stepj : i64
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.maxui %[[V3]], %c1_i64 : i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.subi %ubi, %lbi : i64
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.cmpi slt, %lbi, %ubi : i64
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.select %[[V6]], %[[V5]], %c0_i64 : i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.ceildivui %[[V7]], %stepi : i64
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.muli %[[V8]], %[[V4]] : i64
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.subi %lbi, %stepi : i64
// CHECK-NEXT: %[[V11:[0-9]+]]:3 = scf.for %arg7 = %c0_i64 to %[[V9]] step %c1_i64 iter_args(%arg8 = %c0_i64, %arg9 = %[[V10]], %arg10 = %c0_i64) -> (i64, i64, i64)  : i64 {
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.cmpi eq, %arg8, %c0_i64 : i64
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.select %[[V12]], %lbj, %arg10 : i64
// CHECK-NEXT: %[[V14:[0-9]+]] = scf.if %[[V12]] -> (i64) {
// CHECK-NEXT: %[[V21:[0-9]+]] = arith.addi %arg9, %stepi : i64
// CHECK-NEXT: tt.store %p, %[[V21]] : !tt.ptr<i64>
// CHECK-NEXT: scf.yield %[[V21]] : i64
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg9 : i64
// CHECK-NEXT: }
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.cmpi slt, %arg8, %[[V3]] : i64
// CHECK-NEXT: %[[V16:[0-9]+]] = scf.if %[[V15]] -> (i64) {
// CHECK-NEXT: %s = arith.addi %[[V14]], %[[V13]] : i64
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i64>
// CHECK-NEXT: %[[V21]] = arith.addi %[[V13]], %stepj : i64
// CHECK-NEXT: scf.yield %[[V21]] : i64
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[V13]] : i64
// CHECK-NEXT: }
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.subi %[[V4]], %c1_i64 : i64
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.cmpi eq, %arg8, %[[V17]] : i64
// CHECK-NEXT: scf.if %[[V18]] {
// CHECK-NEXT: %e = arith.muli %[[V14]], %[[V14]] : i64
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.addi %arg8, %c1_i64 : i64
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.select %[[V18]], %c0_i64, %[[V19]] : i64
// CHECK-NEXT: scf.yield %[[V20]], %[[V14]], %[[V16]] : i64, i64, i64
// CHECK-NEXT: } {tt.num_stages = 4 : i32}
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @always(%lbi: i64, %ubi: i64, %stepi: i64, %lbj: i64, %ubj: i64, %stepj: i64, %p: !tt.ptr<i64>) {
  scf.for %i = %lbi to %ubi step %stepi : i64 {
    tt.store %p, %i : !tt.ptr<i64>
    scf.for %j = %lbj to %ubj step %stepj : i64 {
      %s = arith.addi %i, %j : i64
      tt.store %p, %s : !tt.ptr<i64>
    } {tt.num_stages = 4 : i32}
    %e = arith.muli %i, %i : i64
    tt.store %p, %e : !tt.ptr<i64>
  } {tt.flatten, "ttg.always-fuse"}
  tt.return
}
}

// -----

// The last iteration of one is the first of the next.
// CHECK-LABEL: tt.func @two_children(
// CHECK-NEXT: %c-1_i32 = arith.constant -1 : i32
// CHECK-NEXT: %c1_i64 = arith.constant 1 : i64
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.subi %[[V0]], %c1_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.addi %[[V1]], %[[V0]] : i32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.extui %[[V3]] : i32 to i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.extui %[[V2]] : i32 to i64
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.muli %[[V4]], %[[V5]] : i64
// CHECK-NEXT: %[[V7:[0-9]+]]:3 = scf.for %arg3 = %c0_i64 to %[[V6]] step %c1_i64 iter_args(%arg4 = %c0_i32, %arg5 = %c-1_i32, %arg6 = %c0_i32) -> (i32, i32, i32)  : i64 {
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.cmpi eq, %arg4, %c0_i32 : i32
// CHECK-NEXT: %[[V9:[0-9]+]] = scf.if %[[V8]] -> (i32) {
// CHECK-NEXT: %[[V22:[0-9]+]] = arith.addi %arg5, %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V22]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg5 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.cmpi slt, %arg4, %m : i32
// CHECK-NEXT: scf.if %[[V10]] {
// CHECK-NEXT: tt.store %p, %arg4 : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.cmpi eq, %arg4, %[[V1]] : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.select %[[V11]], %c0_i32, %arg6 : i32
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.cmpi sge, %arg4, %[[V1]] : i32
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.addi %[[V1]], %m : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = arith.cmpi slt, %arg4, %[[V14]] : i32
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.andi %[[V13]], %[[V15]] : i1
// CHECK-NEXT: %[[V17:[0-9]+]] = scf.if %[[V16]] -> (i32) {
// CHECK-NEXT: tt.store %p, %[[V9]] : !tt.ptr<i32>
// CHECK-NEXT: %[[V22]] = arith.addi %[[V12]], %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V22]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[V12]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.subi %[[V2]], %c1_i32 : i32
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.cmpi eq, %arg4, %[[V18]] : i32
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg4, %c1_i32 : i32
// CHECK-NEXT: %[[V21:[0-9]+]] = arith.select %[[V19]], %c0_i32, %[[V20]] : i32
// CHECK-NEXT: scf.yield %[[V21]], %[[V9]], %[[V17]] : i32, i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @two_children(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %m step %c1 : i32 {
      tt.store %p, %j : !tt.ptr<i32>
    }
    scf.for %j = %c0 to %m step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    }
  } {"ttg.always-fuse"}
  tt.return
}
}

// -----

// The innermost pair first.
// CHECK-LABEL: tt.func @three_levels(
// CHECK-NEXT: %c-1_i32 = arith.constant -1 : i32
// CHECK-NEXT: %c1_i64 = arith.constant 1 : i64
// CHECK-NEXT: %c0_i64 = arith.constant 0 : i64
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.maxsi %m, %c1_i32 : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.maxsi %m, %c0_i32 : i32
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.extui %[[V0]] : i32 to i64
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.muli %[[V2]], %[[V3]] : i64
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.maxsi %[[V4]], %c1_i64 : i64
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.maxsi %n, %c0_i32 : i32
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.extui %[[V6]] : i32 to i64
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.muli %[[V7]], %[[V5]] : i64
// CHECK-NEXT: %[[V9:[0-9]+]]:6 = scf.for %arg3 = %c0_i64 to %[[V8]] step %c1_i64 iter_args(%arg4 = %c0_i64, %arg5 = %c-1_i32, %arg6 = %c0_i32, %arg7 = %c0_i32, %arg8 = %c0_i32, %arg9 = %c0_i32) -> (i64, i32, i32, i32, i32, i32)  : i64 {
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.cmpi eq, %arg4, %c0_i64 : i64
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.select %[[V10]], %c0_i32, %arg8 : i32
// CHECK-NEXT: %[[V12:[0-9]+]] = arith.select %[[V10]], %c0_i32, %arg6 : i32
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.select %[[V10]], %c-1_i32, %arg9 : i32
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.select %[[V10]], %c-1_i32, %arg7 : i32
// CHECK-NEXT: %[[V15:[0-9]+]] = scf.if %[[V10]] -> (i32) {
// CHECK-NEXT: %[[V22:[0-9]+]] = arith.addi %arg5, %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V22]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %arg5 : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V16:[0-9]+]] = arith.cmpi slt, %arg4, %[[V4]] : i64
// CHECK-NEXT: %[[V17:[0-9]+]]:2 = scf.if %[[V16]] -> (i32, i32) {
// CHECK-NEXT: %[[V22]] = arith.cmpi eq, %[[V12]], %c0_i32 : i32
// CHECK-NEXT: %[[V23:[0-9]+]] = scf.if %[[V22]] -> (i32) {
// CHECK-NEXT: %[[V29:[0-9]+]] = arith.addi %[[V14]], %c1_i32 : i32
// CHECK-NEXT: scf.yield %[[V29]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[V14]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V24:[0-9]+]] = arith.cmpi slt, %[[V12]], %m : i32
// CHECK-NEXT: scf.if %[[V24]] {
// CHECK-NEXT: tt.store %p, %[[V12]] : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V25:[0-9]+]] = arith.subi %[[V0]], %c1_i32 : i32
// CHECK-NEXT: %[[V26:[0-9]+]] = arith.cmpi eq, %[[V12]], %[[V25]] : i32
// CHECK-NEXT: %[[V27:[0-9]+]] = arith.addi %[[V12]], %c1_i32 : i32
// CHECK-NEXT: %[[V28:[0-9]+]] = arith.select %[[V26]], %c0_i32, %[[V27]] : i32
// CHECK-NEXT: scf.yield %[[V28]], %[[V23]] : i32, i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[V12]], %[[V14]] : i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V18:[0-9]+]] = arith.subi %[[V5]], %c1_i64 : i64
// CHECK-NEXT: %[[V19:[0-9]+]] = arith.cmpi eq, %arg4, %[[V18]] : i64
// CHECK-NEXT: %[[V20:[0-9]+]] = arith.addi %arg4, %c1_i64 : i64
// CHECK-NEXT: %[[V21:[0-9]+]] = arith.select %[[V19]], %c0_i64, %[[V20]] : i64
// CHECK-NEXT: scf.yield %[[V21]], %[[V15]], %[[V17]]#0, %[[V17]]#1, %[[V11]], %[[V13]] : i64, i32, i32, i32, i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @three_levels(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %m step %c1 : i32 {
      scf.for %k = %c0 to %m step %c1 : i32 {
        tt.store %p, %k : !tt.ptr<i32>
      }
    }
  } {"ttg.always-fuse"}
  tt.return
}
}

// -----

// Must not fire: the loop has no attribute that requests it.
// CHECK-LABEL: tt.func @no_option(
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %c1 = arith.constant 1 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %c1  : i32 {
// CHECK-NEXT: tt.store %p, %i : !tt.ptr<i32>
// CHECK-NEXT: scf.for %j = %c0 to %m step %c1  : i32 {
// CHECK-NEXT: %s = arith.addi %i, %j : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: } {tt.num_stages = 4 : i32}
// CHECK-NEXT: %e = arith.muli %i, %i : i32
// CHECK-NEXT: tt.store %p, %e : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_option(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
    scf.for %j = %c0 to %m step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    } {tt.num_stages = 4 : i32}
    %e = arith.muli %i, %i : i32
    tt.store %p, %e : !tt.ptr<i32>
  }
  tt.return
}
}

// -----

// Must not fire: the inner loop depends on the outer one.
// CHECK-LABEL: tt.func @dependent_bounds(
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %c1 = arith.constant 1 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %c1  : i32 {
// CHECK-NEXT: %m2 = arith.muli %m, %i : i32
// CHECK-NEXT: scf.for %j = %c0 to %m2 step %c1  : i32 {
// CHECK-NEXT: %s = arith.addi %i, %j : i32
// CHECK-NEXT: tt.store %p, %s : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @dependent_bounds(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %m2 = arith.muli %m, %i : i32
    scf.for %j = %c0 to %m2 step %c1 : i32 {
      %s = arith.addi %i, %j : i32
      tt.store %p, %s : !tt.ptr<i32>
    }
  } {tt.flatten}
  tt.return
}
}

// -----

// Must not fire: two loops inside.
// CHECK-LABEL: tt.func @two_loops_inside(
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %c1 = arith.constant 1 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %c1  : i32 {
// CHECK-NEXT: scf.for %j = %c0 to %m step %c1  : i32 {
// CHECK-NEXT: tt.store %p, %j : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %j = %c0 to %m step %c1  : i32 {
// CHECK-NEXT: tt.store %p, %i : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @two_loops_inside(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %m step %c1 : i32 {
      tt.store %p, %j : !tt.ptr<i32>
    }
    scf.for %j = %c0 to %m step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    }
  } {tt.flatten}
  tt.return
}
}

// -----

// Must not fire: three levels.
// CHECK-LABEL: tt.func @three_levels_flat(
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %c1 = arith.constant 1 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %c1  : i32 {
// CHECK-NEXT: scf.for %j = %c0 to %m step %c1  : i32 {
// CHECK-NEXT: scf.for %k = %c0 to %m step %c1  : i32 {
// CHECK-NEXT: tt.store %p, %k : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: } {tt.flatten}
// CHECK-NEXT: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @three_levels_flat(%n: i32, %m: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %m step %c1 : i32 {
      scf.for %k = %c0 to %m step %c1 : i32 {
        tt.store %p, %k : !tt.ptr<i32>
      }
    }
  } {tt.flatten}
  tt.return
}
}
