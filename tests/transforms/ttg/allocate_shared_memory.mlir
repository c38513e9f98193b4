// RUN: tilework opt %s -p allocate-shared-memory-nv

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!M = !ttg.memdesc<32x32xf32, #s, #smem, mutable>

// CHECK: ttg.shared = 27656 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The buffer lives to the load, the conversion beside it; the reduction takes the buffer's place.
// CHECK-LABEL: @reuse(
// CHECK-NEXT: %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK-NEXT: %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
// CHECK:      %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
// CHECK:        tt.reduce.return %q
// CHECK-NEXT: }) {allocation.offset = 0 : i32}
tt.func public @reuse(%x: tensor<32x32xf32, #a>) {
  %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
  %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
  %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %h: f32):
    %q = arith.addf %l, %h : f32
    tt.reduce.return %q : f32
  }) : (tensor<32x32xf32, #a>) -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #a}>>
  tt.return
}

// What a loop reads lives until the loop ends, although the op after the load could have its place.
// CHECK-LABEL: @loop(
// CHECK:      %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK:        %y = ttg.convert_layout %z {allocation.offset = 4096 : i32}
// CHECK:      %y2 = ttg.convert_layout %x {allocation.offset = 0 : i32}
tt.func public @loop(%x: tensor<32x32xf32, #a>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #a>
    %y = ttg.convert_layout %z : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  }
  %y2 = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  tt.return
}

// Branches back keep a buffer alive through all blocks of the cycle.
// CHECK-LABEL: @branches(
// CHECK-NEXT: %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK:      %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
// CHECK:      %y2 = ttg.convert_layout %x {allocation.offset = 0 : i32}
tt.func public @branches(%x: tensor<32x32xf32, #a>, %p: i1) {
  %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
  cf.br ^again
^again:
  %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #a>
  cf.br ^more
^more:
  %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  cf.cond_br %p, ^again, ^end
^end:
  %y2 = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  tt.return
}

// Either buffer may be behind the result of the if: both live to the last load.
// CHECK-LABEL: @aliased(
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: %k = ttg.local_alloc {allocation.offset = 4096 : i32}
// CHECK:      %y = ttg.convert_layout %x {allocation.offset = 8192 : i32}
tt.func public @aliased(%x: tensor<32x32xf32, #a>, %p: i1) {
  %m = ttg.local_alloc : () -> !M
  %k = ttg.local_alloc : () -> !M
  %v = scf.if %p -> (!M) {
    scf.yield %m : !M
  } else {
    scf.yield %k : !M
  }
  %w = ttg.memdesc_reinterpret %v : !M -> !M
  %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  %z = ttg.local_load %w : !M -> tensor<32x32xf32, #a>
  tt.return
}

// Large buffers come first, so that the smaller ones need no gaps; a layout with a swizzle of 128 bytes is aligned to 1024.
// CHECK-LABEL: @sizes(
// CHECK-NEXT: %bar = ttg.local_alloc {allocation.offset = 27648 : i32}
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 26624 : i32}
// CHECK-NEXT: %k = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: %g = ttg.local_alloc {alignment = 2048 : i32, allocation.offset = 24576 : i32}
tt.func public @sizes() {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>
  %m = ttg.local_alloc : () -> !ttg.memdesc<8x64xf16, #n, #smem, mutable>
  %k = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #n, #smem, mutable>
  %g = ttg.local_alloc {alignment = 2048 : i32} : () -> !ttg.memdesc<16x64xf16, #n, #smem, mutable>
  ttg.local_dealloc %bar : !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>
  ttg.local_dealloc %m : !ttg.memdesc<8x64xf16, #n, #smem, mutable>
  ttg.local_dealloc %k : !ttg.memdesc<3x64x64xf16, #n, #smem, mutable>
  tt.return
}

// Scratch memory of other ops; a warp that has the whole axis, a shuffle, an unused result need none.
// CHECK-LABEL: @scratch(
// CHECK:      }) {allocation.offset = 0 : i32}
// CHECK-NEXT: %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
// CHECK:        tt.reduce.return %h_0
// CHECK:      %h = tt.histogram %v {allocation.offset = 0 : i32}
// CHECK-NEXT: %g = tt.gather %v[%v] {allocation.offset = 0 : i32, axis = 0 : i32}
// CHECK-NEXT: %unused = tt.atomic_rmw add, acq_rel, gpu, %q, %c, %t
// CHECK-NEXT: %used = tt.atomic_rmw add, acq_rel, gpu, %q, %c, %t {allocation.offset = 0 : i32}
// CHECK-NEXT: %each = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %m
tt.func public @scratch(%x: tensor<32x32xf32, #a>, %v: tensor<1024xi32, #l>, %p: tensor<1024x!tt.ptr<i32>, #l>, %q: !tt.ptr<i32>, %c: i32) {
  %m = arith.constant dense<true> : tensor<1024xi1, #l>
  %t = arith.constant true
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%l: f32, %h: f32):
    tt.scan.return %h : f32
  }) : (tensor<32x32xf32, #a>) -> tensor<32x32xf32, #a>
  %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %h: f32):
    tt.reduce.return %h : f32
  }) : (tensor<32x32xf32, #a>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #a}>>
  %h = tt.histogram %v : tensor<1024xi32, #l> -> tensor<16xi32, #l>
  %g = tt.gather %v[%v] {axis = 0 : i32} : (tensor<1024xi32, #l>, tensor<1024xi32, #l>) -> tensor<1024xi32, #l>
  %unused = tt.atomic_rmw add, acq_rel, gpu, %q, %c, %t : (!tt.ptr<i32>, i32, i1) -> i32
  %used = tt.atomic_rmw add, acq_rel, gpu, %q, %c, %t : (!tt.ptr<i32>, i32, i1) -> i32
  %each = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %m : (tensor<1024x!tt.ptr<i32>, #l>, tensor<1024xi32, #l>, tensor<1024xi1, #l>) -> tensor<1024xi32, #l>
  tt.store %q, %used : !tt.ptr<i32>
  tt.store %p, %each : tensor<1024x!tt.ptr<i32>, #l>
  tt.return
}

// A call needs the memory of the function; nothing here needs any.
// CHECK-LABEL: @leaf(
// CHECK-NEXT: %y = ttg.convert_layout %x {allocation.offset = 0 : i32}
tt.func private @leaf(%x: tensor<32x32xf32, #a>) -> tensor<32x32xf32, #b> attributes {noinline = true} {
  %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  tt.return %y : tensor<32x32xf32, #b>
}
// CHECK-LABEL: @nothing(
tt.func private @nothing(%x: i32) attributes {noinline = true} {
  tt.return
}
// CHECK-LABEL: @caller(
// CHECK-NEXT: %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK-NEXT: %y = tt.call @leaf(%x) {allocation.offset = 4096 : i32}
// CHECK:      %w = tt.call @leaf(%x) {allocation.offset = 0 : i32}
tt.func public @caller(%x: tensor<32x32xf32, #a>, %i: i32) {
  %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
  %y = tt.call @leaf(%x) : (tensor<32x32xf32, #a>) -> tensor<32x32xf32, #b>
  %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #a>
  %w = tt.call @leaf(%x) : (tensor<32x32xf32, #a>) -> tensor<32x32xf32, #b>
  tt.call @nothing(%i) : (i32) -> ()
  tt.return
}

// Regions that run beside each other share nothing, although they come one after the other in the text.
// CHECK-LABEL: @beside(
// CHECK-SAME:  {allocation.offset = 12288 : i32}
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: ttg.warp_specialize(%m, %i) attributes {allocation.offset = 4096 : i32}
// CHECK:        %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
// CHECK:        %y = ttg.convert_layout %x1 {allocation.offset = 8192 : i32}
tt.func public @beside(%x: tensor<32x32xf32, #a>, %i: i32) {
  %m = ttg.local_alloc : () -> !M
  ttg.warp_specialize(%m, %i)
  default {
    %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    ttg.warp_yield
  }
  partition0(%c: !M, %j: i32) num_warps(4) {
    %x1 = ttg.local_load %c : !M -> tensor<32x32xf32, #a>
    %y = ttg.convert_layout %x1 : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    ttg.warp_return
  } : (!M, i32) -> ()
  tt.return
}

// What the default region frees it may use again; partitions may not, nor what is passed to them.
// CHECK-LABEL: @freed(
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: ttg.warp_specialize(%m, %i) attributes {allocation.offset = 4096 : i32}
// CHECK:        %y = ttg.convert_layout %x {allocation.offset = 0 : i32}
// CHECK:        %y = ttg.convert_layout %x1 {allocation.offset = 4096 : i32}
tt.func public @freed(%x: tensor<32x32xf32, #a>, %i: i32) {
  %m = ttg.local_alloc : () -> !M
  ttg.warp_specialize(%m, %i)
  default {
    ttg.local_dealloc %m : !M
    %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    ttg.warp_yield
  }
  partition0(%c: !M, %j: i32) num_warps(4) {
    %x1 = ttg.local_load %c : !M -> tensor<32x32xf32, #a>
    %y = ttg.convert_layout %x1 : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    ttg.warp_return
  } : (!M, i32) -> ()
  tt.return
}

// Small scratch memory too is used again at once, and takes no more than Triton's.
// CHECK-LABEL: @in_turn(
// CHECK-NEXT: %y = ttg.convert_layout %x {allocation.offset = 0 : i32}
// CHECK-NEXT: %z = ttg.convert_layout %y {allocation.offset = 0 : i32}
tt.func public @in_turn(%x: tensor<32xf32, #l>) {
  %y = ttg.convert_layout %x : tensor<32xf32, #l> -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #a}>>
  %z = ttg.convert_layout %y : tensor<32xf32, #ttg.slice<{dim = 0, parent = #a}>> -> tensor<32xf32, #l>
  tt.return
}
}
