// RUN: tilework opt %s --split-input-file -p tritonamdgpu-coalesce-async-copy,tritongpu-remove-layout-conversions,tritonamdgpu-convert-buffer-ops,tritonamdgpu-update-async-wait-count

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// Four bytes of each lane at a time: four copies of a tile, of which one tile may be under way.
// CHECK: #[[L:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [16, 0], [32, 0]], lane = {{\[\[}}0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = {{\[\[}}4, 0], [8, 0]]
// CHECK-LABEL: @copies
// CHECK:      %[[O:.*]] = tt.splat %i : i32 -> tensor<64x32xi32, #[[L]]>
// CHECK:      amdg.buffer_load_to_local %p[%[[O]]] into %m {contiguity = 2 : i32}
// CHECK:      amdg.async_wait %{{.*}} {num_inst = 4 : i32}
// CHECK:      amdg.async_wait %{{.*}} {num_inst = 0 : i32}
tt.func public @copies(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %i: i32, %m: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, %n: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>) {
  %o = tt.splat %i : i32 -> tensor<64x32xi32, #blocked>
  %s = tt.splat %p : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #blocked>
  %q = tt.addptr %s, %o : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
  %t = ttg.async_copy_global_to_local %q, %m {contiguity = 8 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #shared, #smem, mutable>
  %g = ttg.async_commit_group tokens %t
  %u = ttg.async_copy_global_to_local %q, %n {contiguity = 8 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #shared, #smem, mutable>
  %h = ttg.async_commit_group tokens %u
  %w = ttg.async_wait %g {num = 1 : i32}
  %x = ttg.async_wait %h {num = 0 : i32}
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#padded = #ttg.padded_shared<[512:+8] {offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [64, 0], [32, 0], [16, 0], [1, 0], [2, 0], [4, 0], [8, 0]], block = []}>
#narrow = #ttg.padded_shared<[4:+4] {order = [1, 0], shape = [128, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// Lanes follow the offsets of padded LDS; 16 bytes at once, and 4 where padding comes after every 8 bytes.
// CHECK: #[[L:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 4], [4, 0], [8, 0]], lane = {{\[\[}}0, 8], [0, 16], [0, 32], [64, 0], [32, 0], [16, 0]], warp = {{\[\[}}1, 0], [2, 0]], block = []}>
// CHECK: #[[N:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [8, 0], [16, 0], [32, 0], [64, 0]], lane = {{\[\[}}0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = {{\[\[}}2, 0], [4, 0]], block = []}>
// CHECK-LABEL: @padded
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %m {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>, #[[L]]>
// CHECK: ttg.async_copy_global_to_local %{{.*}}, %n {contiguity = 2 : i32} : tensor<128x64x!tt.ptr<f16>, #[[N]]>
tt.func public @padded(%q: tensor<128x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<128x64xf16, #padded, #smem, mutable>, %n: !ttg.memdesc<128x64xf16, #narrow, #smem, mutable>) {
  %t = ttg.async_copy_global_to_local %q, %m {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>, #blocked> -> <128x64xf16, #padded, #smem, mutable>
  %u = ttg.async_copy_global_to_local %q, %n {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>, #blocked> -> <128x64xf16, #narrow, #smem, mutable>
  tt.return
}
}
