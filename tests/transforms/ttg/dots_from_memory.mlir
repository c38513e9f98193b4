// RUN: tilework opt %s -p tritongpu-dots-from-memory

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #c}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #c}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Memory that only the dot reads is arranged anew; a factor that was in registers gets memory.
// CHECK-LABEL: @filled(
// CHECK-NEXT: %[[W:.*]] = arith.extf %x
// CHECK-NEXT: %[[A:.*]] = ttg.local_alloc %[[W]] : (tensor<64x64xf32, #blocked>) -> !ttg.memdesc<64x64xf32, #shared
// CHECK-NEXT: %[[B:.*]] = ttg.local_alloc %y : (tensor<64x64xf32, #blocked>) -> !ttg.memdesc<64x64xf32, #shared
// CHECK-NEXT: %[[D:.*]] = ttg.local_dot %[[A]], %[[B]], %z : !ttg.memdesc<64x64xf32, #shared{{.*}}> * !ttg.memdesc<64x64xf32, #shared{{.*}}> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[D]]
tt.func public @filled(%x: tensor<64x64xf16, #b>, %y: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %xw = arith.extf %x : tensor<64x64xf16, #b> to tensor<64x64xf32, #b>
  %m = ttg.local_alloc %xw : (tensor<64x64xf32, #b>) -> !ttg.memdesc<64x64xf32, #s, #smem>
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem> -> tensor<64x64xf32, #d0>
  %b = ttg.convert_layout %y : tensor<64x64xf32, #b> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}

// Memory whose load another op uses too stays as it is, and is not filled twice.
// CHECK-LABEL: @loaded_too(
// CHECK-NEXT: %[[M:.*]] = ttg.local_alloc %x
// CHECK-NEXT: %[[A:.*]] = ttg.local_load %[[M]]
// CHECK-NEXT: %[[B:.*]] = ttg.local_alloc %y
// CHECK-NEXT: %[[D:.*]] = ttg.local_dot %[[M]], %[[B]], %z
// CHECK-NEXT: tt.return %[[D]], %[[A]]
tt.func public @loaded_too(%x: tensor<64x64xf32, #b>, %y: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>) -> (tensor<64x64xf32, #c>, tensor<64x64xf32, #d0>) {
  %m = ttg.local_alloc %x : (tensor<64x64xf32, #b>) -> !ttg.memdesc<64x64xf32, #s, #smem>
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem> -> tensor<64x64xf32, #d0>
  %b = ttg.convert_layout %y : tensor<64x64xf32, #b> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d, %a : tensor<64x64xf32, #c>, tensor<64x64xf32, #d0>
}

// Memory that is written again is read at the dot, if nothing in between writes.
// CHECK-LABEL: @written_again(
// CHECK-NEXT: ttg.async_wait
// CHECK-NEXT: %[[D:.*]] = ttg.local_dot %m, %m, %z
// CHECK-NEXT: ttg.local_store %x, %m
// CHECK-NEXT: tt.return %[[D]]
tt.func public @written_again(%m: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %x: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  %w = ttg.async_wait {num = 0 : i32}
  %b = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  ttg.local_store %x, %m : tensor<64x64xf32, #b> -> !ttg.memdesc<64x64xf32, #s, #smem, mutable>
  tt.return %d : tensor<64x64xf32, #c>
}

// What is written in between is not what was loaded: that gets memory of its own.
// CHECK-LABEL: @written_between(
// CHECK-NEXT: %[[A:.*]] = ttg.local_load %m
// CHECK-NEXT: %[[M:.*]] = ttg.local_alloc %[[A]]
// CHECK-NEXT: ttg.local_store %x, %m
// CHECK-NEXT: ttg.local_dot %[[M]], %m, %z
tt.func public @written_between(%m: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %x: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  ttg.local_store %x, %m : tensor<64x64xf32, #b> -> !ttg.memdesc<64x64xf32, #s, #smem, mutable>
  %b = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}

// A dot under a condition reads the memory there.
// CHECK-LABEL: @under_a_condition(
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[D:.*]] = ttg.local_dot %m, %m, %z
// CHECK-NEXT: scf.yield %[[D]]
tt.func public @under_a_condition(%m: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %z: tensor<64x64xf32, #c>, %p: i1) -> tensor<64x64xf32, #c> {
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  %b = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d1>
  %r = scf.if %p -> (tensor<64x64xf32, #c>) {
    %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
    scf.yield %d : tensor<64x64xf32, #c>
  } else {
    scf.yield %z : tensor<64x64xf32, #c>
  }
  tt.return %r : tensor<64x64xf32, #c>
}

// ... unless it is written in front of the condition, under it, or in a later iteration of a loop.
// CHECK-LABEL: @written_around_a_condition(
// CHECK: %[[M:.*]] = ttg.local_alloc %a
// CHECK: ttg.local_store %x, %m
// CHECK: ttg.local_dot %[[M]], %{{.*}}, %z
// CHECK: %[[N:.*]] = ttg.local_alloc %e
// CHECK: scf.if
// CHECK: ttg.local_store %x, %m
// CHECK: ttg.local_dot %[[N]]
// CHECK: %[[K:.*]] = ttg.local_alloc %f
// CHECK: scf.for
// CHECK: ttg.local_dot %[[K]]
tt.func public @written_around_a_condition(%m: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %n: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %x: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>, %p: i1, %i: i32) -> tensor<64x64xf32, #c> {
  %b = ttg.local_load %n : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d1>
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  ttg.local_store %x, %m : tensor<64x64xf32, #b> -> !ttg.memdesc<64x64xf32, #s, #smem, mutable>
  %r = scf.if %p -> (tensor<64x64xf32, #c>) {
    %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
    scf.yield %d : tensor<64x64xf32, #c>
  } else {
    scf.yield %z : tensor<64x64xf32, #c>
  }
  %e = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  %s = scf.if %p -> (tensor<64x64xf32, #c>) {
    ttg.local_store %x, %m : tensor<64x64xf32, #b> -> !ttg.memdesc<64x64xf32, #s, #smem, mutable>
    %d = tt.dot %e, %b, %r : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
    scf.yield %d : tensor<64x64xf32, #c>
  } else {
    scf.yield %r : tensor<64x64xf32, #c>
  }
  %f = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  %t = scf.for %j = %i to %i step %i iter_args(%u = %s) -> (tensor<64x64xf32, #c>) : i32 {
    %d = tt.dot %f, %b, %u : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
    ttg.local_store %x, %m : tensor<64x64xf32, #b> -> !ttg.memdesc<64x64xf32, #s, #smem, mutable>
    scf.yield %d : tensor<64x64xf32, #c>
  }
  tt.return %t : tensor<64x64xf32, #c>
}

// Lanes that read neighbouring columns of this B meet in the same banks.
// CHECK-LABEL: @conflicts(
// CHECK-NEXT: %[[B:.*]] = ttg.local_load %n : !ttg.memdesc<64x64xf32, #shared{{.*}}, mutable> -> tensor<64x64xf32, #blocked{{.*}}>
// CHECK-NEXT: %[[N:.*]] = ttg.local_alloc %[[B]]
// CHECK-NEXT: ttg.local_dot %m, %[[N]], %z
tt.func public @conflicts(%m: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %n: !ttg.memdesc<64x64xf32, #t, #smem, mutable>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d0>
  %b = ttg.local_load %n : !ttg.memdesc<64x64xf32, #t, #smem, mutable> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}

// Few registers hold these factors.
// CHECK-LABEL: @small(
// CHECK: tt.dot
tt.func public @small(%x: tensor<64x4xf32, #d0>, %y: tensor<4x64xf32, #d1>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %d = tt.dot %x, %y, %z : tensor<64x4xf32, #d0> * tensor<4x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}
}
