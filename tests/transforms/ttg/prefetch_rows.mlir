// RUN: tilework opt %s -p tritongpu-prefetch-rows

#b = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!P = tensor<4096x!tt.ptr<bf16>, #b>
!X = tensor<4096xbf16, #b>
!I = tensor<4096xi32, #b>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The row of the program 703 further on, 43 KB for each multiprocessor of 8 KB a program, if there is such a program. What all programs load is left out.
// CHECK-LABEL: @rows(
// CHECK: %x = tt.load %p, %m :
// CHECK-NEXT: %[[N:.*]] = tt.get_num_programs x : i32
// CHECK-NEXT: %[[D:.*]] = arith.constant 703 : i32
// CHECK-NEXT: %[[L:.*]] = arith.addi %row, %[[D]] : i32
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi ult, %[[L]], %[[N]] : i32
// CHECK-NEXT: %[[S:.*]] = arith.muli %[[L]], %n : i32
// CHECK-NEXT: %[[A:.*]] = tt.addptr %in, %[[S]] :
// CHECK-NEXT: %[[T:.*]] = tt.splat %[[A]] :
// CHECK-NEXT: %[[P:.*]] = tt.addptr %[[T]], %i :
// CHECK-NEXT: %[[ALL:.*]] = tt.splat %[[IN]] : i1
// CHECK-NEXT: %[[M:.*]] = arith.andi %[[ALL]], %m :
// CHECK-NEXT: ttg.fetch %[[P]] mask %[[M]] :
// CHECK: %w = tt.load
// CHECK-NOT: ttg.fetch
tt.func public @rows(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %weights: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %row = tt.get_program_id x : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %c = tt.splat %n : i32 -> !I
  %m = arith.cmpi slt, %i, %c : !I
  %start = arith.muli %row, %n : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p, %m : !P
  %u = tt.splat %weights : !tt.ptr<bf16> -> !P
  %q = tt.addptr %u, %i : !P, !I
  %w = tt.load %q, %m : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  %z = arith.addf %y, %w : !X
  tt.store %p, %z, %m : !P
  tt.return
}

// A mask that depends on the program is computed for the later one.
// CHECK-LABEL: @masks(
// CHECK: %[[L:.*]] = arith.addi %row,
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[L]], %[[N:.*]] : i32
// CHECK: %[[K:.*]] = arith.cmpi slt, %[[L]], %n : i32
// CHECK: %[[M:.*]] = tt.splat %[[K]] : i1
// CHECK: %[[W:.*]] = arith.andi %[[ALL:.*]], %[[M]] :
// CHECK: ttg.fetch %[[P:.*]] mask %[[W]] :
tt.func public @masks(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32) {
  %row = tt.get_program_id x : i32
  %size = arith.constant 4096 : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %k = arith.cmpi slt, %row, %n : i32
  %m = tt.splat %k : i1 -> tensor<4096xi1, #b>
  %start = arith.muli %row, %size : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p, %m : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  tt.store %p, %y, %m : !P
  tt.return
}

// Eight neighbouring programs share a row of scales, which is in L2; with the remainder each has a part of its own.
// CHECK-LABEL: @shared_rows(
// CHECK-COUNT-1: ttg.fetch
// CHECK-NOT: ttg.fetch
// CHECK: tt.return
tt.func public @shared_rows(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %scales: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %pid = tt.get_program_id x : i32
  %eight = arith.constant 8 : i32
  %size = arith.constant 4096 : i32
  %row_size = arith.constant 32768 : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %row = arith.divsi %pid, %eight : i32
  %part = arith.remsi %pid, %eight : i32
  %row_start = arith.muli %row, %row_size : i32
  %part_start = arith.muli %part, %size : i32
  %start = arith.addi %row_start, %part_start : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p : !P
  %b = tt.addptr %scales, %row_start : !tt.ptr<bf16>, i32
  %u = tt.splat %b : !tt.ptr<bf16> -> !P
  %q = tt.addptr %u, %i : !P, !I
  %w = tt.load %q : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  %z = arith.addf %y, %w : !X
  tt.store %p, %z : !P
  tt.return
}

// The address of a row is read from memory, so it is not known ahead.
// CHECK-LABEL: @elsewhere(
// CHECK-NOT: ttg.fetch
tt.func public @elsewhere(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %where: !tt.ptr<i32>) {
  %row = tt.get_program_id x : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %at = tt.addptr %where, %row : !tt.ptr<i32>, i32
  %start = tt.load %at : !tt.ptr<i32>
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  tt.store %p, %y : !P
  tt.return
}

// Without a sum a program ends soon, and the next one asks.
// CHECK-LABEL: @copies(
// CHECK-NOT: ttg.fetch
tt.func public @copies(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %row = tt.get_program_id x : i32
  %size = arith.constant 4096 : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %start = arith.muli %row, %size : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p : !P
  %d = tt.addptr %out, %start : !tt.ptr<bf16>, i32
  %u = tt.splat %d : !tt.ptr<bf16> -> !P
  %q = tt.addptr %u, %i : !P, !I
  tt.store %q, %x : !P
  tt.return
}

// Rows that begin anywhere are loaded two bytes at a time, and would be asked for so.
// CHECK-LABEL: @anywhere(
// CHECK-NOT: ttg.fetch
tt.func public @anywhere(%in: !tt.ptr<bf16>, %n: i32) {
  %row = tt.get_program_id x : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %start = arith.muli %row, %n : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %i : !P, !I
  %x = tt.load %p : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  tt.store %p, %y : !P
  tt.return
}

// Every fourth element: a line would be fetched for a few bytes of it.
// CHECK-LABEL: @apart(
// CHECK-NOT: ttg.fetch
tt.func public @apart(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %row = tt.get_program_id x : i32
  %size = arith.constant 16384 : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : !I
  %four = arith.constant dense<4> : !I
  %j = arith.muli %i, %four : !I
  %start = arith.muli %row, %size : i32
  %a = tt.addptr %in, %start : !tt.ptr<bf16>, i32
  %t = tt.splat %a : !tt.ptr<bf16> -> !P
  %p = tt.addptr %t, %j : !P, !I
  %x = tt.load %p : !P
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: bf16, %r: bf16):
    %o = arith.addf %l, %r : bf16
    tt.reduce.return %o : bf16
  }) : (!X) -> bf16
  %y = tt.splat %s : bf16 -> !X
  tt.store %p, %y : !P
  tt.return
}

}
