// RUN: tilework opt %s --split-input-file -p 'triton-nvidia-optimize-descriptor-encoding'
// The memory that the block is copied to decides.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @kernel_argument(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @kernel_argument(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A descriptor made in the kernel.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @made_here(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @made_here(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A store to shared memory decides too.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @local_store(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: ttg.local_store %x, %m : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @local_store(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s64, #smem, mutable>
  ttg.local_store %x, %m : tensor<64x64xf16, #b> -> !ttg.memdesc<64x64xf16, #s64, #smem, mutable>
  tt.return
}
}

// -----

// The widest swizzle.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @no_wish(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %x : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @no_wish(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  tt.store %q, %x : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Memory that is transposed is no wish: TMA writes rows.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @transposed_memory(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @transposed_memory(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sT, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #sT, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Nor is another kind of memory.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK-LABEL: tt.func public @swizzled_memory(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @swizzled_memory(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sw, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #sw, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A store wishes nothing.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @stored(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.descriptor_store %d[%i, %i], %x : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @stored(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #b>
  tt.descriptor_store %d[%i, %i], %x : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #b>
  tt.return
}
}

// -----

// Nor does a reduction.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @reduced(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.descriptor_reduce add, %d[%i, %i], %x : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @reduced(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #b>
  tt.descriptor_reduce add, %d[%i, %i], %x : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #b>
  tt.return
}
}

// -----

// An unused one gets the layout of its block.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @unused(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @unused(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  tt.return
}
}

// -----

// A use without a wish follows.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @wish_and_none(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %y = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %y : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @wish_and_none(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  %y = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  tt.store %q, %y : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Two wishes: none is granted.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: #shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @clash(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %y = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %k = ttg.local_alloc %y : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared2, #smem>
// CHECK-NEXT: %kx = ttg.local_load %k : !ttg.memdesc<64x64xf16, #shared2, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %kx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#s32 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @clash(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  %y = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %k = ttg.local_alloc %y : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s32, #smem>
  %kx = ttg.local_load %k : !ttg.memdesc<64x64xf16, #s32, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %kx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// What a loop carries has one layout.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @through_a_loop(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %r = scf.for %j = %c0 to %i step %i iter_args(%e = %d) -> (!tt.tensordesc<tensor<64x64xf16, #shared>>)  : i32 {
// CHECK-NEXT: %x = tt.descriptor_load %e[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: scf.yield %e : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: }
// CHECK-NEXT: %z = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %z : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @through_a_loop(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %c0 = arith.constant 0 : i32
  %r = scf.for %j = %c0 to %i step %i iter_args(%e = %d) -> (!tt.tensordesc<tensor<64x64xf16>>) : i32 {
    %x = tt.descriptor_load %e[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
    %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
    %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
    tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
    scf.yield %e : !tt.tensordesc<tensor<64x64xf16>>
  }
  %z = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  tt.store %q, %z : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// The same for a while loop.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @through_while(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %r = scf.while (%e = %d) : (!tt.tensordesc<tensor<64x64xf16, #shared>>) -> !tt.tensordesc<tensor<64x64xf16, #shared>> {
// CHECK-NEXT: %cc = arith.cmpi slt, %i, %n : i32
// CHECK-NEXT: scf.condition(%cc) %e : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%e2: !tt.tensordesc<tensor<64x64xf16, #shared>>):
// CHECK-NEXT: %x = tt.descriptor_load %e2[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: scf.yield %e2 : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @through_while(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %r = scf.while (%e = %d) : (!tt.tensordesc<tensor<64x64xf16>>) -> !tt.tensordesc<tensor<64x64xf16>> {
    %cc = arith.cmpi slt, %i, %n : i32
    scf.condition(%cc) %e : !tt.tensordesc<tensor<64x64xf16>>
  } do {
  ^bb0(%e2: !tt.tensordesc<tensor<64x64xf16>>):
    %x = tt.descriptor_load %e2[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
    %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
    %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
    tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
    scf.yield %e2 : !tt.tensordesc<tensor<64x64xf16>>
  }
  tt.return
}
}

// -----

// The same for both branches.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @through_if(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %c2 = arith.constant 1 : i64
// CHECK-NEXT: %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %r = scf.if %cc -> (!tt.tensordesc<tensor<64x64xf16, #shared>>) {
// CHECK-NEXT: scf.yield %d : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %d2 : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: }
// CHECK-NEXT: %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @through_if(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>, %cc: i1) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %c2 = arith.constant 1 : i64
  %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16>>
  %r = scf.if %cc -> (!tt.tensordesc<tensor<64x64xf16>>) {
    scf.yield %d : !tt.tensordesc<tensor<64x64xf16>>
  } else {
    scf.yield %d2 : !tt.tensordesc<tensor<64x64xf16>>
  }
  %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Wishes that meet in a branch clash.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
// CHECK: #shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @clash_in_if(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %c2 = arith.constant 1 : i64
// CHECK-NEXT: %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %x0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m0 = ttg.local_alloc %x0 : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %m0x = ttg.local_load %m0 : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %m0x : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %r = scf.if %cc -> (!tt.tensordesc<tensor<64x64xf16, #shared>>) {
// CHECK-NEXT: scf.yield %d : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %d2 : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: }
// CHECK-NEXT: %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared2, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared2, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#s32 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @clash_in_if(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>, %cc: i1) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %c2 = arith.constant 1 : i64
  %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16>>
  %x0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m0 = ttg.local_alloc %x0 : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s32, #smem>
  %m0x = ttg.local_load %m0 : !ttg.memdesc<64x64xf16, #s32, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %m0x : tensor<64x64x!tt.ptr<f16>, #b>
  %r = scf.if %cc -> (!tt.tensordesc<tensor<64x64xf16>>) {
    scf.yield %d : !tt.tensordesc<tensor<64x64xf16>>
  } else {
    scf.yield %d2 : !tt.tensordesc<tensor<64x64xf16>>
  }
  %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A select of descriptors.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @through_select(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %c2 = arith.constant 1 : i64
// CHECK-NEXT: %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: %r = arith.select %cc, %d, %d2 : !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @through_select(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>, %cc: i1) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  %c2 = arith.constant 1 : i64
  %d2 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c2] : <f16>, <tensor<64x64xf16>>
  %r = arith.select %cc, %d, %d2 : !tt.tensordesc<tensor<64x64xf16>>
  %x = tt.descriptor_load %r[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Across functions no wish is granted.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @call(
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: tt.call @g(%d, %i, %q) : (!tt.tensordesc<tensor<64x64xf16, #shared>>, i32, tensor<64x64x!tt.ptr<f16>, #blocked>) -> ()
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
// CHECK-LABEL: tt.func private @g(
// CHECK-SAME: %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @call(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  tt.call @g(%d, %i, %q) : (!tt.tensordesc<tensor<64x64xf16>>, i32, tensor<64x64x!tt.ptr<f16>, #b>) -> ()
  tt.return
}
tt.func private @g(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Nor for what a function returns.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @call_result(
// CHECK-NEXT: %d = tt.call @g(%p, %n, %s) : (!tt.ptr<f16>, i32, i64) -> !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
// CHECK-LABEL: tt.func private @g(
// CHECK-SAME: %p: !tt.ptr<f16>, %n: i32, %s: i64) -> !tt.tensordesc<tensor<64x64xf16, #shared>> {
// CHECK-NEXT: %c1 = arith.constant 1 : i64
// CHECK-NEXT: %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16, #shared>>
// CHECK-NEXT: tt.return %d : !tt.tensordesc<tensor<64x64xf16, #shared>>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @call_result(%i: i32, %p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %d = tt.call @g(%p, %n, %s) : (!tt.ptr<f16>, i32, i64) -> !tt.tensordesc<tensor<64x64xf16>>
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
tt.func private @g(%p: !tt.ptr<f16>, %n: i32, %s: i64) -> !tt.tensordesc<tensor<64x64xf16>> {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <tensor<64x64xf16>>
  tt.return %d : !tt.tensordesc<tensor<64x64xf16>>
}
}

// -----

// Nor for a descriptor that is reinterpreted from a pointer.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @reinterpreted(
// CHECK-NEXT: %d = ttng.reinterpret_tensor_descriptor %p8 : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @reinterpreted(%p8: !tt.ptr<i8>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %d = ttng.reinterpret_tensor_descriptor %p8 : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16>>
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A block with a dimension that the tensor does not have.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @rank(
// CHECK-SAME: %d: !tt.tensordesc<tensor<1x64x64xf16, #shared>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i, %i] : !tt.tensordesc<tensor<1x64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
// CHECK-NEXT: %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @rank(%d: !tt.tensordesc<tensor<1x64x64xf16>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i, %i] : !tt.tensordesc<tensor<1x64x64xf16>> -> tensor<64x64xf16, #b>
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s64, #smem>
  %mx = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s64, #smem> -> tensor<64x64xf16, #b>
  tt.store %q, %mx : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// Rank 3.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK-LABEL: tt.func public @three_dimensions(
// CHECK-SAME: %d: !tt.tensordesc<tensor<4x64x64xf16, #shared>>, %i: i32, %q3: tensor<4x64x64x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i, %i] : !tt.tensordesc<tensor<4x64x64xf16, #shared>> -> tensor<4x64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q3, %x : tensor<4x64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @three_dimensions(%d: !tt.tensordesc<tensor<4x64x64xf16>>, %i: i32, %q3: tensor<4x64x64x!tt.ptr<f16>, #b3>) {
  %x = tt.descriptor_load %d[%i, %i, %i] : !tt.tensordesc<tensor<4x64x64xf16>> -> tensor<4x64x64xf16, #b3>
  tt.store %q3, %x : tensor<4x64x64x!tt.ptr<f16>, #b3>
  tt.return
}
}

// -----

// Rank 1.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16, rank = 1}>
// CHECK-LABEL: tt.func public @one_dimension(
// CHECK-SAME: %d: !tt.tensordesc<tensor<128xf16, #shared>>, %i: i32, %q4: tensor<128x!tt.ptr<f16>, #ttg.slice<{dim = 0, parent = #blocked}>>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i] : !tt.tensordesc<tensor<128xf16, #shared>> -> tensor<128xf16, #ttg.slice<{dim = 0, parent = #blocked}>>
// CHECK-NEXT: tt.store %q4, %x : tensor<128x!tt.ptr<f16>, #ttg.slice<{dim = 0, parent = #blocked}>>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @one_dimension(%d: !tt.tensordesc<tensor<128xf16>>, %i: i32, %q4: tensor<128x!tt.ptr<f16>, #ttg.slice<{dim = 0, parent = #b}>>) {
  %x = tt.descriptor_load %d[%i] : !tt.tensordesc<tensor<128xf16>> -> tensor<128xf16, #ttg.slice<{dim = 0, parent = #b}>>
  tt.store %q4, %x : tensor<128x!tt.ptr<f16>, #ttg.slice<{dim = 0, parent = #b}>>
  tt.return
}
}

// -----

// Fewer than 8 rows have no swizzle.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @small(
// CHECK-SAME: %d: !tt.tensordesc<tensor<4x8xf16, #shared>>, %i: i32, %q4: tensor<4x8x!tt.ptr<f16>, #blocked>) {
// CHECK-NEXT: %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<4x8xf16, #shared>> -> tensor<4x8xf16, #blocked>
// CHECK-NEXT: tt.store %q4, %x : tensor<4x8x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @small(%d: !tt.tensordesc<tensor<4x8xf16>>, %i: i32, %q4: tensor<4x8x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<4x8xf16>> -> tensor<4x8xf16, #b>
  tt.store %q4, %x : tensor<4x8x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// A gather is a block of many rows.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @gathered(
// CHECK-SAME: %d: !tt.tensordesc<tensor<1x64xf16, #shared>>, %ix: tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked1>) {
// CHECK-NEXT: %x = tt.descriptor_gather %d[%ix, %i] : (!tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, i32) -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: tt.store %q, %x : tensor<64x64x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @gathered(%d: !tt.tensordesc<tensor<1x64xf16>>, %ix: tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.descriptor_gather %d[%ix, %i] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>, i32) -> tensor<64x64xf16, #b>
  tt.store %q, %x : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// So is a scatter.
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func public @scattered(
// CHECK-SAME: %d: !tt.tensordesc<tensor<1x64xf16, #shared>>, %ix: tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #blocked1>) {
// CHECK-NEXT: %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: tt.descriptor_scatter %d[%ix, %i], %x : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, i32, tensor<64x64xf16, #blocked1>
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @scattered(%d: !tt.tensordesc<tensor<1x64xf16>>, %ix: tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>, %i: i32, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
  %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #b>
  tt.descriptor_scatter %d[%ix, %i], %x : !tt.tensordesc<tensor<1x64xf16>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>, i32, tensor<64x64xf16, #b>
  tt.return
}
}
