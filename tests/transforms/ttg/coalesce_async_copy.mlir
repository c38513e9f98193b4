// RUN: tilework opt %s -p tritongpu-coalesce-async-copy

// CHECK-DAG: #[[OWN:[a-z0-9]+]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>

#bl = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [2, 16], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [0, 1]}>
#b4 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s1 = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#s0 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#n = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // A swizzle in pieces of 8: eight neighbours per thread, for the mask and the other value, too.
// CHECK-LABEL: @clip(
// CHECK-NEXT: %0 = ttg.convert_layout %p :
// CHECK-NEXT: %1 = ttg.convert_layout %k :
// CHECK-NEXT: %2 = ttg.convert_layout %o :
// CHECK-NEXT: %t = ttg.async_copy_global_to_local %0, %m mask %1 other %2 :
// CHECK-NEXT: %3 = ttg.convert_layout %p :
// CHECK-NEXT: %u = ttg.async_copy_global_to_local %3, %m {contiguity = 8 : i32}
// CHECK-NEXT: tt.return
  tt.func public @clip(%p: tensor<64x64x!tt.ptr<i8>, #bl> {tt.contiguity = dense<[1, 16]> : tensor<2xi32>, tt.divisibility = dense<[1, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xi8, #s, #smem, mutable>, %k: tensor<64x64xi1, #bl>, %o: tensor<64x64xi8, #bl>) {
    %t = ttg.async_copy_global_to_local %p, %m mask %k other %o {contiguity = 16 : i32} : tensor<64x64x!tt.ptr<i8>, #bl> -> <64x64xi8, #s, #smem, mutable>
    %u = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<i8>, #bl> -> <64x64xi8, #s, #smem, mutable>
    tt.return
  }
  // Only along the contiguous dimension.
// CHECK-LABEL: @two(
// CHECK-NEXT: %0 = ttg.convert_layout %p :
// CHECK-NEXT: %t = ttg.async_copy_global_to_local %0, %m {contiguity = 8 : i32}
// CHECK-NEXT: tt.return
  tt.func public @two(%p: tensor<64x64x!tt.ptr<i8>, #b2> {tt.contiguity = dense<[1, 16]> : tensor<2xi32>, tt.divisibility = dense<[1, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xi8, #s, #smem, mutable>) {
    %t = ttg.async_copy_global_to_local %p, %m {contiguity = 16 : i32} : tensor<64x64x!tt.ptr<i8>, #b2> -> <64x64xi8, #s, #smem, mutable>
    tt.return
  }
  // Memory in the other order takes them one by one; the same order and the layout of tensor cores take all.
// CHECK-LABEL: @order(
// CHECK-NEXT: %0 = ttg.convert_layout %p :
// CHECK-NEXT: %t = ttg.async_copy_global_to_local %0, %m :
// CHECK-NEXT: %t0 = ttg.async_copy_global_to_local %p, %m0 {contiguity = 16 : i32}
// CHECK-NEXT: %t1 = ttg.async_copy_global_to_local %q, %n {contiguity = 16 : i32}
// CHECK-NEXT: tt.return
  tt.func public @order(%p: tensor<64x64x!tt.ptr<i8>, #b3> {tt.contiguity = dense<[16, 1]> : tensor<2xi32>, tt.divisibility = dense<[16, 1]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xi8, #s, #smem, mutable>, %m0: !ttg.memdesc<64x64xi8, #s0, #smem, mutable>, %n: !ttg.memdesc<64x64xi8, #n, #smem, mutable>, %q: tensor<64x64x!tt.ptr<i8>, #bl> {tt.contiguity = dense<[1, 16]> : tensor<2xi32>, tt.divisibility = dense<[1, 16]> : tensor<2xi32>}) {
    %t = ttg.async_copy_global_to_local %p, %m {contiguity = 16 : i32} : tensor<64x64x!tt.ptr<i8>, #b3> -> <64x64xi8, #s, #smem, mutable>
    %t0 = ttg.async_copy_global_to_local %p, %m0 {contiguity = 16 : i32} : tensor<64x64x!tt.ptr<i8>, #b3> -> <64x64xi8, #s0, #smem, mutable>
    %t1 = ttg.async_copy_global_to_local %q, %n {contiguity = 16 : i32} : tensor<64x64x!tt.ptr<i8>, #bl> -> <64x64xi8, #n, #smem, mutable>
    tt.return
  }
  // Fewer words than threads: one for each, in the order of their addresses. Not parts of words, nor a word for each.
// CHECK-LABEL: @small(
// CHECK-NEXT: %0 = ttg.convert_layout %p : tensor<8x8x!tt.ptr<f32>, #[[GIVEN:[a-z0-9]+]]> -> tensor<8x8x!tt.ptr<f32>, #[[OWN]]>
// CHECK-NEXT: %t = ttg.async_copy_global_to_local %0, %m : tensor<8x8x!tt.ptr<f32>, #[[OWN]]> ->
// CHECK-NEXT: %u = ttg.async_copy_global_to_local %q, %n : tensor<8x8x!tt.ptr<f16>, #[[GIVEN]]> ->
// CHECK-NEXT: %v = ttg.async_copy_global_to_local %r, %o : tensor<16x8x!tt.ptr<f32>, #[[GIVEN]]> ->
// CHECK-NEXT: tt.return
  tt.func public @small(%p: tensor<8x8x!tt.ptr<f32>, #b4> {tt.contiguity = dense<[8, 1]> : tensor<2xi32>, tt.divisibility = dense<[16, 1]> : tensor<2xi32>}, %m: !ttg.memdesc<8x8xf32, #s1, #smem, mutable>, %q: tensor<8x8x!tt.ptr<f16>, #b4>, %n: !ttg.memdesc<8x8xf16, #s1, #smem, mutable>, %r: tensor<16x8x!tt.ptr<f32>, #b4>, %o: !ttg.memdesc<16x8xf32, #s1, #smem, mutable>) {
    %t = ttg.async_copy_global_to_local %p, %m : tensor<8x8x!tt.ptr<f32>, #b4> -> <8x8xf32, #s1, #smem, mutable>
    %u = ttg.async_copy_global_to_local %q, %n : tensor<8x8x!tt.ptr<f16>, #b4> -> <8x8xf16, #s1, #smem, mutable>
    %v = ttg.async_copy_global_to_local %r, %o : tensor<16x8x!tt.ptr<f32>, #b4> -> <16x8xf32, #s1, #smem, mutable>
    tt.return
  }
}
