// RUN: tilework opt %s -p tritongpu-test-pipeline-lower-loop --allow-unregistered-dialect

#A = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dA = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#t = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!PA = tensor<64x32x!tt.ptr<f16>, #A>
!LA = tensor<64x32xf16, #A>
!D = !tt.tensordesc<tensor<64x32xf16, #s>>
!M = !ttg.memdesc<64x32xf16, #s, #smem>
!MT = !ttg.memdesc<32x64xf16, #t, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Two stages between load and use: two buffers, laid out for the product. The copy keeps the mask, the cache policy and `isVolatile`.
// CHECK-LABEL: @copy
// CHECK:      %[[BUF:.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x32xf16, #shared{{[0-9]*}}, #smem, mutable>
// CHECK:      scf.for %{{.*}} iter_args(%[[INS:.*]] = %[[M1:.*]], %[[EXT:.*]] = %[[M1]]) -> (i32, i32)
// CHECK-NEXT:   %[[TWO:.*]] = arith.constant {loop.cluster = 2 : i32, loop.stage = 0 : i32} 2 : i32
// CHECK-NEXT:   %[[I1:.*]] = arith.addi %[[INS]], %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[IC:.*]] = arith.cmpi sge, %[[I1]], %[[TWO]] {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[I:.*]] = arith.select %[[IC]], %{{.*}}, %[[I1]] {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[E1:.*]] = arith.addi %[[EXT]], %{{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[EC:.*]] = arith.cmpi sge, %[[E1]], %[[TWO]] {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[E:.*]] = arith.select %[[EC]], %{{.*}}, %[[E1]] {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[TO:.*]] = ttg.memdesc_index %[[BUF]][%[[I]]] {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[T:.*]] = ttg.async_copy_global_to_local %{{.*}}, %[[TO]] mask %{{.*}} other %{{.*}} cacheModifier = cg {contiguity = 8 : i32, isVolatile = true, loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[G:.*]] = ttg.async_commit_group tokens %[[T]] {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK-NEXT:   %[[W:.*]] = ttg.async_wait %[[G]] {loop.cluster = 0 : i32, loop.stage = 2 : i32, num = 0 : i32}
// CHECK-NEXT:   %[[FROM:.*]] = ttg.memdesc_index %[[BUF]][%[[E]]] {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[X:.*]] = ttg.local_load %[[FROM]] token %[[W]] {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   ttg.convert_layout %[[X]]
// CHECK:        scf.yield %[[I]], %[[E]] : i32, i32
// CHECK-NEXT: } {tt.scheduled_max_stage = 2 : i32}
// CHECK-NEXT: ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: ttg.local_dealloc %[[BUF]]
tt.func public @copy(%pa: !PA {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %m: tensor<64x32xi1, #A> {tt.constancy = dense<[1, 32]> : tensor<2xi32>}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : !LA
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %pa, %m, %z cacheModifier = cg {isVolatile = true, loop.cluster = 2 : i32, loop.stage = 0 : i32} : !PA
    %xa = ttg.convert_layout %x {loop.cluster = 0 : i32, loop.stage = 2 : i32} : !LA -> tensor<64x32xf16, #dA>
    tt.print "x" {hex = false, isSigned = array<i32: 0>, loop.cluster = 0 : i32, loop.stage = 2 : i32} : %xa : tensor<64x32xf16, #dA>
  } {tt.scheduled_max_stage = 2 : i32}
  tt.return
}

// A copy fills what the mask leaves out with zeros: another value is put back behind it.
// CHECK-LABEL: @other
// CHECK: %[[X:.*]] = ttg.local_load
// CHECK-NEXT: arith.select %{{.*}}, %[[X]], %{{.*}} {loop.cluster = 0 : i32, loop.stage = 1 : i32}
tt.func public @other(%pa: !PA {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %m: tensor<64x32xi1, #A> {tt.constancy = dense<[1, 32]> : tensor<2xi32>}, %o: !LA, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %pa, %m, %o {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !PA
    tt.store %pa, %x {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !PA
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// A scalar is a tensor of one element on its way.
// CHECK-LABEL: @scalar
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x1xi32, #shared{{[0-9]*}}, #smem, mutable>
// CHECK: %[[P:.*]] = tt.splat %{{.*}} {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<i32> -> tensor<1x!tt.ptr<i32>, #blocked{{[0-9]+}}>
// CHECK: ttg.async_copy_global_to_local %[[P]], %{{.*}} {loop.cluster = 1 : i32, loop.stage = 0 : i32}
// CHECK: %[[L:.*]] = ttg.local_load
// CHECK-NEXT: %[[S:.*]] = tt.unsplat %[[L]] {loop.cluster = 0 : i32, loop.stage = 1 : i32}
// CHECK-NEXT: tt.store %{{.*}}, %[[S]]
tt.func public @scalar(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %p {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>
    tt.store %p, %x {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !tt.ptr<i32>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// Two bytes at a time: the value stays in registers.
// CHECK-LABEL: @registers
// CHECK-NOT: local_alloc
// CHECK: tt.load
// CHECK-NOT: async
// CHECK: tt.return
tt.func public @registers(%pa: !PA, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %pa {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !PA
    tt.store %pa, %x {loop.cluster = 0 : i32, loop.stage = 1 : i32} : !PA
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// Memory that a product of a warp group reads is the buffer itself, and so are views of it; one buffer more, because the
// product may still read when the next copy starts. Two loads that stand together share a barrier.
// CHECK-LABEL: @tma
// CHECK:      %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, #shared{{[0-9]*}}, #smem, mutable>
// CHECK-NEXT: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, #shared{{[0-9]*}}, #smem, mutable>
// CHECK:      %[[BAR:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64, #shared{{[0-9]+}}, #smem, mutable>
// CHECK-COUNT-3: ttng.init_barrier %{{.*}}, 1
// CHECK:      scf.for
// CHECK:        %[[FLIP:.*]] = arith.xori %{{.*}}, %{{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[PHASE:.*]] = arith.select %{{.*}}, %[[FLIP]], %{{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK:        ttng.barrier_expect %[[HERE:.*]], 8192
// CHECK:        ttng.async_tma_copy_global_to_local %{{.*}}[%{{.*}}, %{{.*}}] %{{.*}}, %[[HERE]], %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK:        ttng.async_tma_copy_global_to_local %{{.*}}[%{{.*}}, %{{.*}}] %{{.*}}, %[[HERE]], %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32}
// CHECK:        ttng.wait_barrier %{{.*}}, %[[PHASE]] {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK-NEXT:   %[[VB:.*]] = ttg.memdesc_index %[[B]]
// CHECK-NEXT:   %[[VA:.*]] = ttg.memdesc_index %[[A]]
// CHECK-NEXT:   %[[T:.*]] = ttg.memdesc_trans %[[VB]] {{.*}} -> !ttg.memdesc<32x64xf16, #shared{{[0-9]*}}, #smem, mutable>
// CHECK-NEXT:   ttng.warp_group_dot %[[VA]], %[[T]], %{{.*}}
// CHECK:      }
// CHECK-COUNT-3: ttng.inval_barrier
// CHECK:      ttg.local_dealloc %[[BAR]]
// CHECK-NEXT: ttg.local_dealloc %[[B]]
// CHECK-NEXT: ttg.local_dealloc %[[A]]
tt.func public @tma(%a: !D, %b: !D, %n: i32, %z: tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.descriptor_load %a[%c0, %k] {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !D -> !LA
    %xm = ttg.local_alloc %x {loop.cluster = 0 : i32, loop.stage = 2 : i32} : (!LA) -> !M
    %y = tt.descriptor_load %b[%k, %c0] {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !D -> !LA
    %ym = ttg.local_alloc %y {loop.cluster = 0 : i32, loop.stage = 2 : i32} : (!LA) -> !M
    %yt = ttg.memdesc_trans %ym {order = array<i32: 1, 0>, loop.cluster = 0 : i32, loop.stage = 2 : i32} : !M -> !MT
    %d = ttng.warp_group_dot %xm, %yt, %z {inputPrecision = 0 : i32, loop.cluster = 0 : i32, loop.stage = 2 : i32} : !M * !MT -> tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>
  } {tt.scheduled_max_stage = 2 : i32}
  tt.return
}

// The product is waited for, and the store, although it comes later, reads registers: one buffer is enough.
// CHECK-LABEL: @waited_for
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16,
tt.func public @waited_for(%a: !D, %n: i32, %b: !MT, %pa: !PA, %z: tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.descriptor_load %a[%c0, %k] {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !D -> !LA
    %xm = ttg.local_alloc %x {loop.cluster = 0 : i32, loop.stage = 1 : i32} : (!LA) -> !M
    tt.store %pa, %x {loop.cluster = 3 : i32, loop.stage = 1 : i32} : !PA
    %d = ttng.warp_group_dot %xm, %b, %z {inputPrecision = 0 : i32, loop.cluster = 0 : i32, loop.stage = 1 : i32} : !M * !MT -> tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>
    "test.use"(%d) {loop.cluster = 0 : i32, loop.stage = 1 : i32} : (tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>) -> ()
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}

// Here it could run on, but ends before the next copy: as registers are filled too, there is no buffer more for it.
// CHECK-LABEL: @runs_on
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16,
tt.func public @runs_on(%a: !D, %n: i32, %b: !MT, %pa: !PA, %z: tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>) : i32 {
    %x = tt.descriptor_load %a[%c0, %k] {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !D -> !LA
    %xm = ttg.local_alloc %x {loop.cluster = 0 : i32, loop.stage = 1 : i32} : (!LA) -> !M
    tt.store %pa, %x {loop.cluster = 3 : i32, loop.stage = 1 : i32} : !PA
    %d = ttng.warp_group_dot %xm, %b, %s {inputPrecision = 0 : i32, loop.cluster = 0 : i32, loop.stage = 1 : i32} : !M * !MT -> tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>
    scf.yield %d : tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>
  } {tt.scheduled_max_stage = 1 : i32}
  tt.return
}
}
