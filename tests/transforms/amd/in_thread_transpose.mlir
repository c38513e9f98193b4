// RUN: tilework opt %s -p tritonamdgpu-in-thread-transpose

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#turned = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
// CHECK-DAG: #[[TALL:.*]] = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[LINEAR:.*]] = #ttg.linear<{register = {{\[\[}}1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = {{\[\[}}0, 8], [0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], warp = {{\[\[}}16, 0], [32, 0]], block = []}>
// CHECK-DAG: #[[ROTATING:.*]] = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: @across_k
// CHECK:      %[[V:.*]] = tt.load {{.*}}, #[[TALL]]>
// CHECK:      %[[T:.*]] = amdg.in_thread_transpose {{.*}} -> tensor<64x128xf16, #[[LINEAR]]>
// CHECK-NEXT: %[[M:.*]] = ttg.local_alloc %[[T]] : {{.*}} -> !ttg.memdesc<64x128xf16, #[[ROTATING]], #smem>
// CHECK-NEXT: ttg.local_load %[[M]]
tt.func @across_k(%p: tensor<64x128x!tt.ptr<f16>, #blocked>) -> tensor<64x128xf16, #b> {
  %v = tt.load %p : tensor<64x128x!tt.ptr<f16>, #blocked>
  %m = ttg.local_alloc %v : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
  %x = ttg.local_load %m : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  tt.return %x : tensor<64x128xf16, #b>
}

// CHECK-LABEL: @along_k
// CHECK-NOT: in_thread_transpose
tt.func @along_k(%p: tensor<64x128x!tt.ptr<f16>, #blocked>) -> tensor<64x128xf16, #a> {
  %v = tt.load %p : tensor<64x128x!tt.ptr<f16>, #blocked>
  %m = ttg.local_alloc %v : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
  %x = ttg.local_load %m : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #a>
  tt.return %x : tensor<64x128xf16, #a>
}

// CHECK-LABEL: @another_view
// CHECK-NOT: in_thread_transpose
tt.func @another_view(%p: tensor<64x128x!tt.ptr<f16>, #blocked>) -> tensor<128x64xf16, #a> {
  %v = tt.load %p : tensor<64x128x!tt.ptr<f16>, #blocked>
  %m = ttg.local_alloc %v : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
  %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #turned, #smem>
  %x = ttg.local_load %t : !ttg.memdesc<128x64xf16, #turned, #smem> -> tensor<128x64xf16, #a>
  tt.return %x : tensor<128x64xf16, #a>
}
}
