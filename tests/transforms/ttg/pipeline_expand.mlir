// RUN: tilework opt %s -p tritongpu-pipeline

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// The value of stage 0 for two iterations is computed before the loop and carried; its counter runs two steps ahead.
// CHECK-LABEL: @two_ahead
// CHECK:      %[[V0:.*]] = arith.muli %lb, %lb : i32
// CHECK:      %[[L1:.*]] = arith.addi %lb, %s : i32
// CHECK:      %[[V1:.*]] = arith.muli %[[L1]], %[[L1]] : i32
// CHECK:      scf.for %[[K:.*]] = %lb to %ub step %s iter_args(%[[OLD:.*]] = %[[V0]], %[[NEW:.*]] = %[[V1]]) -> (i32, i32)
// CHECK:        tt.store %{{.*}}, %[[OLD]] : !tt.ptr<i32>
// CHECK:        %[[K2:.*]] = arith.addi %[[K]], %{{.*}} : i32
// CHECK:        %[[V2:.*]] = arith.muli %[[K2]], %{{.*}} : i32
// CHECK:        scf.yield %[[NEW]], %[[V2]] : i32, i32
tt.func public @two_ahead(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32) {
  scf.for %k = %lb to %ub step %s : i32 {
    %v = arith.muli %k, %k {loop.cluster = 1 : i32, loop.stage = 0 : i32} : i32
    tt.store %p, %v {loop.cluster = 0 : i32, loop.stage = 2 : i32} : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 2 : i32}
  tt.return
}

// What has an effect runs ahead only where its iteration exists.
// CHECK-LABEL: @predicated
// CHECK:      %[[FIRST:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK:      tt.store %p, %lb, %[[FIRST]] : !tt.ptr<i32>
// CHECK:      %[[BOTH:.*]] = arith.andi %[[FIRST]], %c : i1
// CHECK-NEXT: scf.if %[[BOTH]]
// CHECK:      scf.for %[[K:.*]] = %lb to %ub
// CHECK-NEXT:   %[[END:.*]] = arith.subi %ub, %s : i32
// CHECK-NEXT:   %[[MORE:.*]] = arith.cmpi slt, %[[K]], %[[END]] : i32
// CHECK-NEXT:   tt.store %q, %[[K]] : !tt.ptr<i32>
// CHECK:        tt.store %p, %{{.*}}, %[[MORE]] : !tt.ptr<i32>
// CHECK:        %[[BOTH2:.*]] = arith.andi %[[MORE]], %c : i1
// CHECK-NEXT:   scf.if %[[BOTH2]]
tt.func public @predicated(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32, %c: i1) {
  scf.for %k = %lb to %ub step %s : i32 {
    tt.store %p, %k {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>
    scf.if %c {
      tt.store %p, %ub : !tt.ptr<i32>
    } {loop.cluster = 1 : i32, loop.stage = 0 : i32}
    tt.store %q, %k {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// A carried value that is used behind the loop keeps what the last iteration gave it.
// CHECK-LABEL: @carried
// CHECK:      %[[FIRST:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK:      %[[N0:.*]] = tt.addptr %p, %s : !tt.ptr<i32>, i32
// CHECK:      %[[P0:.*]] = arith.select %[[FIRST]], %[[N0]], %p : !tt.ptr<i32>
// CHECK:      %[[R:.*]] = scf.for {{.*}} iter_args(%[[Q:.*]] = %[[P0]]
// CHECK:        %[[N:.*]] = tt.addptr %[[Q]], %s : !tt.ptr<i32>, i32
// CHECK:        arith.select %{{.*}}, %[[N]], %[[Q]] : !tt.ptr<i32>
// CHECK:      tt.return
tt.func public @carried(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32) -> !tt.ptr<i32> {
  %r = scf.for %k = %lb to %ub step %s iter_args(%q = %p) -> (!tt.ptr<i32>) : i32 {
    tt.store %q, %k {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !tt.ptr<i32>
    %n = tt.addptr %q, %s {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>, i32
    scf.yield %n : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return %r : !tt.ptr<i32>
}

// One iteration: the predicates are known.
// CHECK-LABEL: @one_iteration
// CHECK: tt.store %p, %{{.*}}, %[[TRUE:true.*]] : !tt.ptr<i32>
tt.func public @one_iteration(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %c1 step %c1 : i32 {
    tt.store %p, %k {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>
    tt.store %p, %c1 {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// An op that came after the schedule has no stage: it runs with what needs it, or last; the loop is pipelined.
// CHECK-LABEL: @one_without
// CHECK:      %[[F0:.*]] = arith.addi %lb, %s : i32
// CHECK:      %[[V0:.*]] = arith.muli %[[F0]], %lb : i32
// CHECK:      scf.for {{.*}} iter_args(%[[OLD:.*]] = %[[V0]], %{{.*}} = %{{.*}}) -> (i32, i32)
// CHECK-NEXT:   tt.store %{{.*}}, %[[OLD]] : !tt.ptr<i32>
// CHECK-NEXT:   tt.store %q, %[[OLD]] : !tt.ptr<i32>
tt.func public @one_without(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32) {
  scf.for %k = %lb to %ub step %s : i32 {
    %f = arith.addi %k, %s : i32
    %v = arith.muli %f, %k {loop.cluster = 1 : i32, loop.stage = 0 : i32} : i32
    tt.store %p, %v {loop.cluster = 0 : i32, loop.stage = 2 : i32} : !tt.ptr<i32>
    tt.store %q, %v : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 2 : i32}
  tt.return
}

// A print cannot run ahead: the loop stays, without its schedule.
// CHECK-LABEL: @cannot
// CHECK-NEXT: scf.for %k = %lb to %ub step %s : i32 {
// CHECK-NEXT:   tt.print "k" {{.*}} : %k : i32
// CHECK-NEXT:   tt.store %p, %k : !tt.ptr<i32>
// CHECK-NEXT: }
tt.func public @cannot(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32) {
  scf.for %k = %lb to %ub step %s : i32 {
    tt.print "k" {hex = false, isSigned = array<i32: 1>, loop.cluster = 1 : i32, loop.stage = 0 : i32} : %k : i32
    tt.store %p, %k {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// A loop without a schedule, and a while, are left alone.
// CHECK-LABEL: @untouched
// CHECK: scf.for %k = %lb to %ub step %s : i32 {
// CHECK-NEXT: tt.store %p, %k
// CHECK: scf.while
tt.func public @untouched(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %s: i32) -> i32 {
  scf.for %k = %lb to %ub step %s : i32 {
    tt.store %p, %k : !tt.ptr<i32>
  }
  %r = scf.while (%i = %lb) : (i32) -> i32 {
    %c = arith.cmpi slt, %i, %ub : i32
    scf.condition(%c) %i : i32
  } do {
  ^bb0(%i: i32):
    %v = tt.load %p : !tt.ptr<i32>
    %n = arith.addi %i, %v : i32
    scf.yield %n : i32
  }
  tt.return %r : i32
}
}
