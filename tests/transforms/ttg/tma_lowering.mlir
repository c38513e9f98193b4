// RUN: tilework opt %s -p triton-nvidia-tma-lowering

#bl = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#off = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#s1 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16, rank = 1}>
#s3 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 32, rank = 3}>
#s8 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#st = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Memory and a barrier of its own, waited for at once.
// CHECK-LABEL: @load(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %0 = ttg.local_alloc :
// CHECK-NEXT: %1 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %1, 1 :
// CHECK-NEXT: ttng.barrier_expect %1, 8192, %true :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%x, %y] %0, %1, %true :
// CHECK-NEXT: ttng.wait_barrier %1, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %1 :
// CHECK-NEXT: %2 = ttg.local_load %0 :
// CHECK-NEXT: tt.return %2 :
  tt.func public @load(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %y: i32) -> tensor<64x64xf16, #bl> {
    %1 = tt.descriptor_load %d[%x, %y] cacheModifier = cg : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    tt.return %1 : tensor<64x64xf16, #bl>
  }
  // Where the block is wanted in memory as TMA wrote it, it is that memory; so are views of it.
// CHECK-LABEL: @load_alloc(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %0 = ttg.local_alloc :
// CHECK-NEXT: %1 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %1, 1 :
// CHECK-NEXT: ttng.barrier_expect %1, 8192, %true :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%x, %y] %0, %1, %true :
// CHECK-NEXT: ttng.wait_barrier %1, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %1 :
// CHECK-NEXT: %2 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>}
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: tt.return %3 :
  tt.func public @load_alloc(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %y: i32) -> tensor<64x64xf16, #bl> {
    %1 = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %2 = ttg.local_alloc %1 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
    %4 = ttg.memdesc_trans %2 {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #s, #smem> -> !ttg.memdesc<64x64xf16, #st, #smem>
    %3 = ttg.local_load %4 : !ttg.memdesc<64x64xf16, #st, #smem> -> tensor<64x64xf16, #bl>
    tt.return %3 : tensor<64x64xf16, #bl>
  }
  // Both in memory and in registers.
// CHECK-LABEL: @load_alloc2(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %0 = ttg.local_alloc :
// CHECK-NEXT: %1 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %1, 1 :
// CHECK-NEXT: ttng.barrier_expect %1, 8192, %true :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%x, %y] %0, %1, %true :
// CHECK-NEXT: ttng.wait_barrier %1, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %1 :
// CHECK-NEXT: %2 = ttg.local_load %0 :
// CHECK-NEXT: %3 = ttg.local_load %0 :
// CHECK-NEXT: tt.return %3, %2 :
  tt.func public @load_alloc2(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %y: i32) -> (tensor<64x64xf16, #bl>, tensor<64x64xf16, #bl>) {
    %1 = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %2 = ttg.local_alloc %1 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
    %3 = ttg.local_load %2 : !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf16, #bl>
    tt.return %3, %1 : tensor<64x64xf16, #bl>, tensor<64x64xf16, #bl>
  }
  // No other op needs the memory: it may be written.
// CHECK-LABEL: @load_mut(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %0 = ttg.local_alloc :
// CHECK-NEXT: %1 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %1, 1 :
// CHECK-NEXT: ttng.barrier_expect %1, 8192, %true :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%x, %y] %0, %1, %true :
// CHECK-NEXT: ttng.wait_barrier %1, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %1 :
// CHECK-NEXT: tt.return %0 :
  tt.func public @load_mut(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %y: i32) -> !ttg.memdesc<64x64xf16, #s, #smem, mutable> {
    %1 = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %2 = ttg.local_alloc %1 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    tt.return %2 : !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  }
  // Rows by number.
// CHECK-LABEL: @gather(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %0 = ttg.local_alloc :
// CHECK-NEXT: %1 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %1, 1 :
// CHECK-NEXT: ttng.barrier_expect %1, 4096, %true :
// CHECK-NEXT: ttng.async_tma_gather %d[%x, %y] %0, %1, %true :
// CHECK-NEXT: ttng.wait_barrier %1, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %1 :
// CHECK-NEXT: %2 = ttg.local_load %0 :
// CHECK-NEXT: tt.return %2 :
  tt.func public @gather(%d: !tt.tensordesc<tensor<1x64xf16, #s>>, %x: tensor<32xi32, #off>, %y: i32) -> tensor<32x64xf16, #bl> {
    %1 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16, #s>>, tensor<32xi32, #off>, i32) -> tensor<32x64xf16, #bl>
    tt.return %1 : tensor<32x64xf16, #bl>
  }
  // Rows by number, out.
// CHECK-LABEL: @scatter(
// CHECK-NEXT: %0 = ttg.local_alloc %v :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_scatter %d[%x, %y] %0 :
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: tt.return
  tt.func public @scatter(%d: !tt.tensordesc<tensor<1x64xf16, #s>>, %x: tensor<32xi32, #off>, %y: i32, %v: tensor<32x64xf16, #bl>) {
    tt.descriptor_scatter %d[%x, %y], %v : !tt.tensordesc<tensor<1x64xf16, #s>>, tensor<32xi32, #off>, i32, tensor<32x64xf16, #bl>
    tt.return
  }
  // A block out, and one added.
// CHECK-LABEL: @store(
// CHECK-NEXT: %0 = ttg.local_alloc %v :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %d[%x, %y] %0 :
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: %1 = ttg.local_alloc %v :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_reduce add, %d[%x, %y] %1 :
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: tt.return
  tt.func public @store(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %y: i32, %v: tensor<64x64xf16, #bl>) {
    tt.descriptor_store %d[%x, %y], %v : !tt.tensordesc<tensor<64x64xf16, #s>>, tensor<64x64xf16, #bl>
    tt.descriptor_reduce add, %d[%x, %y], %v : !tt.tensordesc<tensor<64x64xf16, #s>>, tensor<64x64xf16, #bl>
    tt.return
  }
  // The store takes the memory of the load.
// CHECK-LABEL: @copy(
// CHECK-NEXT: %c0_i32 = arith.constant 0 : i32
// CHECK-NEXT: %true = arith.constant true
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %c2_i64 = arith.constant 2 : i64
// CHECK-NEXT: %c64_i32 = arith.constant 64 : i32
// CHECK-NEXT: %one = arith.constant 1 : i64
// CHECK-NEXT: %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}
// CHECK-NEXT: %1 = arith.muli %st, %c2_i64 : i64
// CHECK-NEXT: ttng.tensormap_create %0, %p, [%c64_i32, %c64_i32], [%n, %m], [%1], [%c1_i32, %c1_i32] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %0 :
// CHECK-NEXT: %2 = ttng.reinterpret_tensor_descriptor %0 :
// CHECK-NEXT: %3 = ttg.local_alloc :
// CHECK-NEXT: %4 = ttg.local_alloc :
// CHECK-NEXT: ttng.init_barrier %4, 1 :
// CHECK-NEXT: ttng.barrier_expect %4, 8192, %true :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %2[%x, %y] %3, %4, %true :
// CHECK-NEXT: ttng.wait_barrier %4, %c0_i32 :
// CHECK-NEXT: ttng.inval_barrier %4 :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %2[%x, %y] %3 :
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: tt.return
  tt.func public @copy(%p: !tt.ptr<f16>, %m: i32, %n: i32, %st: i64, %x: i32, %y: i32) {
    %one = arith.constant 1 : i64
    %d = tt.make_tensor_descriptor %p, [%m, %n], [%st, %one] : <f16>, <tensor<64x64xf16, #s>>
    %1 = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    tt.descriptor_store %d[%x, %y], %1 : !tt.tensordesc<tensor<64x64xf16, #s>>, tensor<64x64xf16, #bl>
    tt.return
  }
  // Boxes of at most 256, one row of the swizzle; strides in bytes; NaN for what is outside.
// CHECK-LABEL: @make(
// CHECK-NEXT: %c256_i32 = arith.constant 256 : i32
// CHECK-NEXT: %c4_i64 = arith.constant 4 : i64
// CHECK-NEXT: %c4_i32 = arith.constant 4 : i32
// CHECK-NEXT: %c8_i32 = arith.constant 8 : i32
// CHECK-NEXT: %c1_i32 = arith.constant 1 : i32
// CHECK-NEXT: %c64_i32 = arith.constant 64 : i32
// CHECK-NEXT: %one = arith.constant 1 : i64
// CHECK-NEXT: %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}
// CHECK-NEXT: ttng.tensormap_create %0, %p, [%c64_i32], [%m], [], [%c1_i32] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 0 : i32}
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %0 :
// CHECK-NEXT: %1 = ttng.reinterpret_tensor_descriptor %0 :
// CHECK-NEXT: %2 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}
// CHECK-NEXT: %3 = arith.muli %su, %c4_i64 : i64
// CHECK-NEXT: %4 = arith.muli %st, %c4_i64 : i64
// CHECK-NEXT: ttng.tensormap_create %2, %q, [%c8_i32, %c8_i32, %c4_i32], [%k, %n, %m], [%3, %4], [%c1_i32, %c1_i32, %c1_i32] {elem_type = 7 : i32, fill_mode = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 1 : i32}
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %2 :
// CHECK-NEXT: %5 = ttng.reinterpret_tensor_descriptor %2 :
// CHECK-NEXT: %6 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}
// CHECK-NEXT: ttng.tensormap_create %6, %r, [%c64_i32, %c256_i32], [%n, %m], [%st], [%c1_i32, %c1_i32] {elem_type = 0 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32}
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %6 :
// CHECK-NEXT: %7 = ttng.reinterpret_tensor_descriptor %6 :
// CHECK-NEXT: tt.return %1, %5, %7 :
  tt.func public @make(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>, %r: !tt.ptr<i8>, %m: i32, %n: i32, %k: i32, %st: i64, %su: i64) -> (!tt.tensordesc<tensor<64xf16, #s1>>, !tt.tensordesc<tensor<4x8x8xf32, #s3>>, !tt.tensordesc<tensor<512x128xui8, #s8>>) {
    %one = arith.constant 1 : i64
    %d = tt.make_tensor_descriptor %p, [%m], [%one] : <f16>, <tensor<64xf16, #s1>>
    %e = tt.make_tensor_descriptor %q, [%m, %n, %k], [%st, %su, %one] {padding = 2 : i32} : <f32>, <tensor<4x8x8xf32, #s3>>
    %f = tt.make_tensor_descriptor %r, [%m, %n], [%st, %one] : <i8>, <tensor<512x128xui8, #s8>>
    tt.return %d, %e, %f : !tt.tensordesc<tensor<64xf16, #s1>>, !tt.tensordesc<tensor<4x8x8xf32, #s3>>, !tt.tensordesc<tensor<512x128xui8, #s8>>
  }
  // A descriptor without a layout that TMA writes stays.
// CHECK-LABEL: @plain(
// CHECK-NEXT: %0 = tt.descriptor_load %d[%x, %x] :
// CHECK-NEXT: tt.return %0 :
  tt.func public @plain(%d: !tt.tensordesc<tensor<64x64xf16>>, %x: i32) -> tensor<64x64xf16, #bl> {
    %1 = tt.descriptor_load %d[%x, %x] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #bl>
    tt.return %1 : tensor<64x64xf16, #bl>
  }
  // So does one that is made here, without a layout or with one that TMA does not write.
// CHECK-LABEL: @made_plain(
// CHECK-NEXT: tt.make_tensor_descriptor
// CHECK-NEXT: tt.make_tensor_descriptor
// CHECK-NEXT: tt.return
  tt.func public @made_plain(%p: !tt.ptr<f16>, %n: i32, %st: i64, %one: i64) -> (!tt.tensordesc<tensor<64x64xf16>>, !tt.tensordesc<tensor<64x64xf16, #sw>>) {
    %d = tt.make_tensor_descriptor %p, [%n, %n], [%st, %one] : <f16>, <tensor<64x64xf16>>
    %e = tt.make_tensor_descriptor %p, [%n, %n], [%st, %one] : <f16>, <tensor<64x64xf16, #sw>>
    tt.return %d, %e : !tt.tensordesc<tensor<64x64xf16>>, !tt.tensordesc<tensor<64x64xf16, #sw>>
  }
  // The memory goes through the wait of a dot, which then has its type.
// CHECK-LABEL: @load_waited(
// CHECK: %[[W:.*]]:2 = ttng.warp_group_dot_wait %{{.*}}, %{{.*}} {pendings = 0 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: ttng.warp_group_dot %[[W]]#1, %[[W]]#1, %[[W]]#0 {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.func public @load_waited(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %x: i32, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %1 = tt.descriptor_load %d[%x, %x] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %2 = ttg.local_alloc %1 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
    %3 = ttng.warp_group_dot %2, %2, %c {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf32, #mma>
    %4:2 = ttng.warp_group_dot_wait %3, %2 {pendings = 0 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #s, #smem>
    %5 = ttng.warp_group_dot %4#1, %4#1, %4#0 {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf32, #mma>
    tt.return %5 : tensor<64x64xf32, #mma>
  }
  // A loop carries memory of the type it was made for: it is filled from registers, as before.
// CHECK-LABEL: @load_carried(
// CHECK: %[[X:.*]] = ttg.local_load
// CHECK: %[[M:.*]] = ttg.local_alloc %[[X]] :
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[M]])
  tt.func public @load_carried(%d: !tt.tensordesc<tensor<64x64xf16, #s>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %1 = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %2 = ttg.local_alloc %1 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
    %3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %2) -> (!ttg.memdesc<64x64xf16, #s, #smem>) : i32 {
      %4 = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s, #smem> -> tensor<64x64xf16, #bl>
      %5 = ttg.local_alloc %4 : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
      scf.yield %5 : !ttg.memdesc<64x64xf16, #s, #smem>
    }
    tt.return
  }
  // Stores, scatters and gathers through a descriptor with another layout of shared memory.
// CHECK-LABEL: @swizzled(
// CHECK: ttg.local_alloc %v : (tensor<64x64xf16, #blocked{{.*}}>) -> !ttg.memdesc<64x64xf16, #[[S:.*]], #smem>
// CHECK: ttng.async_tma_copy_local_to_global %d[%y, %y] %{{.*}} : !tt.tensordesc<tensor<64x64xf16, #[[S]]>>
// CHECK: ttng.async_tma_reduce add, %d[%y, %y]
// CHECK: ttng.async_tma_scatter %e[%x, %y]
// CHECK: ttng.async_tma_gather %e[%x, %y]
  tt.func public @swizzled(%d: !tt.tensordesc<tensor<64x64xf16, #sw>>, %e: !tt.tensordesc<tensor<1x64xf16, #sw>>, %x: tensor<32xi32, #off>, %y: i32, %v: tensor<64x64xf16, #bl>, %w: tensor<32x64xf16, #bl>) -> tensor<32x64xf16, #bl> {
    tt.descriptor_store %d[%y, %y], %v : !tt.tensordesc<tensor<64x64xf16, #sw>>, tensor<64x64xf16, #bl>
    tt.descriptor_reduce add, %d[%y, %y], %v : !tt.tensordesc<tensor<64x64xf16, #sw>>, tensor<64x64xf16, #bl>
    tt.descriptor_scatter %e[%x, %y], %w : !tt.tensordesc<tensor<1x64xf16, #sw>>, tensor<32xi32, #off>, i32, tensor<32x64xf16, #bl>
    %1 = tt.descriptor_gather %e[%x, %y] : (!tt.tensordesc<tensor<1x64xf16, #sw>>, tensor<32xi32, #off>, i32) -> tensor<32x64xf16, #bl>
    tt.return %1 : tensor<32x64xf16, #bl>
  }
}
