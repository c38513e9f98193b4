// RUN: tilework opt %s -p 'tritongpu-coalesce'

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The author promises contiguity.
// CHECK-LABEL: @hints(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<1024x!tt.ptr<f16>, #blocked1>
  tt.func public @hints(%p: !tt.ptr<f16>, %n: i32) {
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
    %ns = tt.splat %n : i32 -> tensor<1024xi32, #blocked>
    %o = arith.muli %r, %ns {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>} : tensor<1024xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %o {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>} : tensor<1024x!tt.ptr<f16>, #blocked>, tensor<1024xi32, #blocked>
    %x = tt.load %pp : tensor<1024x!tt.ptr<f16>, #blocked>
    tt.store %pp, %x : tensor<1024x!tt.ptr<f16>, #blocked>
    tt.return
  }

// Accesses that belong together take the widest; what is stored is never wider than its pointers allow.
// CHECK-LABEL: @straight(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked2>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<i8>, #blocked2>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<i8>, #blocked2>
  tt.func public @straight(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<i8> -> tensor<512x!tt.ptr<i8>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r : tensor<512x!tt.ptr<i8>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pp : tensor<512x!tt.ptr<f16>, #blocked>
    %y = tt.load %qq : tensor<512x!tt.ptr<i8>, #blocked>
    tt.store %pp, %x : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %qq, %y : tensor<512x!tt.ptr<i8>, #blocked>
    tt.return
  }

// One is aligned to 4 bytes only: read like the other, stored on its own.
// CHECK-LABEL: @con(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked3>
  tt.func public @con(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pp : tensor<512x!tt.ptr<f16>, #blocked>
    %y = tt.load %qq : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %pp, %x : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %qq, %y : tensor<512x!tt.ptr<f16>, #blocked>
    tt.return
  }

// They do not belong together.
// CHECK-LABEL: @sep(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked3>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked3>
  tt.func public @sep(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %r2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2 : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pp : tensor<512x!tt.ptr<f16>, #blocked>
    %y = tt.load %qq : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %pp, %x : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %qq, %y : tensor<512x!tt.ptr<f16>, #blocked>
    tt.return
  }

// Pointers that a loop carries keep their own width.
// CHECK-LABEL: @q_carried(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked3>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
  tt.func public @q_carried(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %st = arith.constant dense<512> : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %r2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2 : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%qa = %qq) -> (tensor<512x!tt.ptr<f16>, #blocked>)  : i32 {
      %y = tt.load %qa : tensor<512x!tt.ptr<f16>, #blocked>
      tt.store %pp, %y : tensor<512x!tt.ptr<f16>, #blocked>
      %qn = tt.addptr %qa, %st : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
      scf.yield %qn : tensor<512x!tt.ptr<f16>, #blocked>
    }
    tt.return
  }

// Pointers computed in the loop do not.
// CHECK-LABEL: @cst_both(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
  tt.func public @cst_both(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %st = arith.constant dense<512> : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %r2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2 : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%pa = %pp, %qa = %qq) -> (tensor<512x!tt.ptr<f16>, #blocked>, tensor<512x!tt.ptr<f16>, #blocked>)  : i32 {
      %pn = tt.addptr %pa, %st : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
      %qn = tt.addptr %qa, %st : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
      %y = tt.load %qn : tensor<512x!tt.ptr<f16>, #blocked>
      tt.store %pn, %y : tensor<512x!tt.ptr<f16>, #blocked>
      scf.yield %pa, %qa : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512x!tt.ptr<f16>, #blocked>
    }
    tt.return
  }

// Connected through a store in a branch.
// CHECK-LABEL: @if_store(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
  tt.func public @if_store(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %st = arith.constant dense<512> : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %r2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2 : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pp : tensor<512x!tt.ptr<f16>, #blocked>
    %y = tt.load %qq : tensor<512x!tt.ptr<f16>, #blocked>
    scf.if %c {
      tt.store %pp, %y : tensor<512x!tt.ptr<f16>, #blocked>
    }
    tt.return
  }

// Values that branches yield connect nothing.
// CHECK-LABEL: @via_if_result(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: tt.store {{.*}}, {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked3>
  tt.func public @via_if_result(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %st = arith.constant dense<512> : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %r2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2 : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pp : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %pp, %x : tensor<512x!tt.ptr<f16>, #blocked>
    %s = scf.if %c -> (tensor<512xf16, #blocked>) {
      %y = tt.load %qq : tensor<512x!tt.ptr<f16>, #blocked>
      scf.yield %y : tensor<512xf16, #blocked>
    } else {
      scf.yield %x : tensor<512xf16, #blocked>
    }
    tt.return
  }

// Connected through the loop.
// CHECK-LABEL: @via_iv(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<f16>, #blocked1>
  tt.func public @via_iv(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 4 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %st = arith.constant dense<512> : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    %r2_ = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %qq = tt.addptr %qs, %r2_ : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
    scf.for %i = %c0 to %n step %c1  : i32 {
      %is = tt.splat %i : i32 -> tensor<512xi32, #blocked>
      %pn = tt.addptr %pp, %is {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>} : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
      %is2 = tt.splat %i : i32 -> tensor<512xi32, #blocked>
      %qn = tt.addptr %qq, %is2 {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<4> : tensor<1xi32>} : tensor<512x!tt.ptr<f16>, #blocked>, tensor<512xi32, #blocked>
      %x = tt.load %pn : tensor<512x!tt.ptr<f16>, #blocked>
      %y = tt.load %qn : tensor<512x!tt.ptr<f16>, #blocked>
    }
    tt.return
  }

// What says where atomics go that shared memory collects is loaded as they are laid out, unless something else needs it.
// CHECK-LABEL: @collected(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<i32>, #blocked>
// CHECK: {{.*}} = tt.atomic_rmw {{.*}} -> tensor<512xi32, #blocked>
  tt.func public @collected(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %at = tt.load %pp : tensor<512x!tt.ptr<i32>, #blocked>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %qq = tt.addptr %qs, %at : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %old = tt.atomic_rmw add, acq_rel, gpu, %qq, %r : (tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>) -> tensor<512xi32, #blocked>
    tt.return
  }

// CHECK-LABEL: @collected_and_stored(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<i32>, #blocked4>
// CHECK: {{.*}} = tt.atomic_rmw {{.*}} -> tensor<512xi32, #blocked>
// CHECK: tt.store {{.*}} : tensor<512x!tt.ptr<i32>, #blocked4>
  tt.func public @collected_and_stored(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %at = tt.load %pp : tensor<512x!tt.ptr<i32>, #blocked>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %qq = tt.addptr %qs, %at : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %old = tt.atomic_rmw add, acq_rel, gpu, %qq, %r : (tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>) -> tensor<512xi32, #blocked>
    tt.store %pp, %at : tensor<512x!tt.ptr<i32>, #blocked>
    tt.return
  }

// The old values are used: memory does each by itself.
// CHECK-LABEL: @not_collected(
// CHECK: {{.*}} = tt.load {{.*}} : tensor<512x!tt.ptr<i32>, #blocked4>
// CHECK: {{.*}} = tt.atomic_rmw {{.*}} -> tensor<512xi32, #blocked>
  tt.func public @not_collected(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %pp = tt.addptr %ps, %r : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %at = tt.load %pp : tensor<512x!tt.ptr<i32>, #blocked>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #blocked>
    %qq = tt.addptr %qs, %at : tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>
    %old = tt.atomic_rmw add, acq_rel, gpu, %qq, %r : (tensor<512x!tt.ptr<i32>, #blocked>, tensor<512xi32, #blocked>) -> tensor<512xi32, #blocked>
    tt.store %pp, %old : tensor<512x!tt.ptr<i32>, #blocked>
    tt.return
  }
}
