#nvb = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 0]]}>
#bar2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#blocked8 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blockedR = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#nv3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#sh1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%i: i32, %p: i1, %t: tensor<64x64xf16, #blocked>, %desc: !tt.tensordesc<tensor<64x64xf16, #nv>>, %ptr: !tt.ptr<i8>, %l: i64, %ptrs: tensor<64x64x!tt.ptr<f16>, #blocked>, %mask: tensor<64x64xi1, #blocked>, %bytes: tensor<64x64xi8, #blocked>, %rows: !tt.tensordesc<tensor<1x64xf16, #nv>>, %x_offsets: tensor<32xi32, #ttg.slice<{dim = 0, parent = #blockedR}>>, %nv32: !ttg.memdesc<32x64xf16, #nv, #smem, mutable>, %sums: tensor<64x64xf32, #blocked>, %index: tensor<32x64xi32, #blocked>, %token: !ttg.async.token, %acc: tensor<64x64xf32, #mma>, %lhs: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc %t {alignment = 16 : i32} : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %c = ttg.memdesc_subslice %b[0, 32] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, #shared, #smem, 64x64>
    %s = ttg.memdesc_index %a[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_store %t, %s : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %x = ttg.local_load %s : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    %fma = ttg.local_dot %b, %s, %sums : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #blocked>
    %warp = ttg.warp_id
    %warp2 = ttg.warp_id {omitUniformHint}
    %gathered = ttg.local_gather %s[%index] {axis = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<32x64xi32, #blocked> -> tensor<32x64xf16, #blocked>
    %gathered2 = ttg.local_gather %s[%index] token %token {axis = 1 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<32x64xi32, #blocked> -> tensor<32x64xf16, #blocked>
    ttg.local_scatter %s[%index], %gathered {axis = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<32x64xi32, #blocked>, tensor<32x64xf16, #blocked>
    ttg.local_scatter %s[%index], %gathered token %token {axis = 1 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<32x64xi32, #blocked>, tensor<32x64xf16, #blocked>
    %g = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 256 : i32} : !tt.ptr<i8>
    %g2 = ttg.global_scratch_alloc {alignment = 16 : i32, backend = "proton", nbytes = 256 : i32} : !tt.ptr<i8>
    %cm = ttg.async_commit_group
    %w = ttg.async_wait %cm, %cm {num = 2 : i32}
    %q = ttg.predicate_stage %i, %i, %i maxStage 3 stage 1 : i32 -> i1
    %r = "ttg.mask"(%p) ({
      %one = arith.constant 1 : i32
      ttg.mask.return %one : i32
    }) : (i1) -> i32
    ttg.barrier local
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.wait_barrier %bar, %i, %p : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.wait_barrier %bar, %i deps %s : !ttg.memdesc<1xi64, #sh1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.arrive_barrier %bar, 2 : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.arrive_barrier %bar, 2, %p : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.async_copy_mbarrier_arrive %bar {noIncrement} : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.fence_async_shared {bCluster = false}
    ttng.pingpong_signal %bar : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.pingpong_wait %bar, %i : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    %nv = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.async_tma_copy_global_to_local %desc[%i, %i] %nv, %bar, %p cacheModifier = ca evictionPolicy = evict_first {isVolatile = true} : !tt.tensordesc<tensor<64x64xf16, #nv>>, !ttg.memdesc<1xi64, #sh1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %nv : !tt.tensordesc<tensor<64x64xf16, #nv>>, !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.async_tma_reduce add, %desc[%i, %i] %nv : !tt.tensordesc<tensor<64x64xf16, #nv>>, !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.tensormap_create %ptr, %ptr, [%i, %i], [%i, %i], [%l], [%i, %i] {elem_type = 3 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %ptr : !tt.ptr<i8>
    %rd = ttng.reinterpret_tensor_descriptor %ptr : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #nv>>
    %tr = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>, #smem>
    %dot = ttg.local_load %s token %w : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>
    %cvt = ttg.convert_layout %t : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #mma2>
    %copy = ttg.async_copy_global_to_local %ptrs, %s mask %mask other %t cacheModifier = cg evictionPolicy = evict_last {contiguity = 4 : i32, isVolatile = true} : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf16, #shared, #smem, mutable>
    ttg.fetch %ptrs mask %mask : tensor<64x64x!tt.ptr<f16>, #blocked>
    %group = ttg.async_commit_group tokens %copy
    %all = ttg.async_wait {num = 0 : i32}
    %fp4 = ttg.fp4_to_fp %bytes {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf16, #blocked8>
    %resh = ttg.memdesc_reshape %nv : !ttg.memdesc<64x64xf16, #nv, #smem, mutable> -> !ttg.memdesc<2x32x64xf16, #nv3, #smem, mutable>
    %rein = ttg.memdesc_reinterpret %nv : !ttg.memdesc<64x64xf16, #nv, #smem, mutable> -> !ttg.memdesc<64x64xi16, #nv, #smem, mutable>
    %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.barrier_expect %bar, 8192, %p : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttng.async_tma_gather %rows[%x_offsets, %i] %nv32, %bar, %p : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blockedR}>>, i32, !ttg.memdesc<1xi64, #sh1, #smem, mutable>, !ttg.memdesc<32x64xf16, #nv, #smem, mutable>, i1
    ttng.async_tma_scatter %rows[%x_offsets, %i] %nv32 : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blockedR}>>, i32, !ttg.memdesc<32x64xf16, #nv, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 1 : i32}
    ttng.wait_barrier %bar, %i, %p deps %nv, %buf : !ttg.memdesc<1xi64, #sh1, #smem, mutable>, !ttg.memdesc<64x64xf16, #nv, #smem, mutable>, !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    %d0 = ttng.warp_group_dot %nv, %buf, %acc {inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 64 : i32} : !ttg.memdesc<64x64xf16, #nv, #smem, mutable> * !ttg.memdesc<64x64xf16, #nv, #smem, mutable> -> tensor<64x64xf32, #mma>
    %d1 = ttng.warp_group_dot %lhs, %buf, %acc, %p : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #nv, #smem, mutable> -> tensor<64x64xf32, #mma>
    %d2:2 = ttng.warp_group_dot_wait %d0, %buf {pendings = 1 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
    ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #sh1, #smem, mutable>
    ttg.local_dealloc %a : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    %wsr = ttg.warp_specialize(%i, %p) attributes {requestedRegisters = array<i32: 24, 32>}
    default {
      %one = arith.constant 1 : i32
      ttg.warp_yield %one : i32
    }
    partition0(%arg0: i32, %arg1: i1) num_warps(4) {
      ttg.warp_return
    }
    partition1(%arg0: i32, %arg1: i1) num_warps(1) {
      ttg.warp_return
    } : (i32, i1) -> i32
    tt.return
  }
  module @pair attributes {"ttg.num-ctas" = 2 : i32} {
    tt.func @g(%desc: !tt.tensordesc<tensor<64x64xf16, #nvb>>, %columns: !ttng.tensordesc_im2col<tensor<64x64xf16, #nvb>>, %m: !ttg.memdesc<64x64xf16, #nvb, #smem, mutable>, %bar: !ttg.memdesc<2xi64, #bar2, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
      ttng.init_barrier %bar, 1 : !ttg.memdesc<2xi64, #bar2, #smem, mutable>
      ttng.fence_mbarrier_init_release_cluster
      ttng.cluster_arrive {relaxed = false}
      ttng.cluster_wait
      ttng.async_tma_copy_global_to_local %desc[%i, %i] %m, %bar, %p {multicast} : !tt.tensordesc<tensor<64x64xf16, #nvb>>, !ttg.memdesc<2xi64, #bar2, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvb, #smem, mutable>
      ttng.async_tma_copy_global_to_local %columns[%i, %i, %i, %i] offsets = [%o, %o] %m, %bar, %p : !ttng.tensordesc_im2col<tensor<64x64xf16, #nvb>>, !ttg.memdesc<2xi64, #bar2, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvb, #smem, mutable>
      tt.return
    }
  }
}
