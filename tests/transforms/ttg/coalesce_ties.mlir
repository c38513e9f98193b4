// RUN: tilework opt %s -p 'convert-triton-to-tritongpu{target=cuda:90 num-warps=4},tritongpu-coalesce'

// Neither stride is known: lanes go along the last dimension.
// CHECK: #[[LAST:blocked4]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<f32>, #[[LAST]]>
// CHECK: tt.store {{.*}} : tensor<64x64x!tt.ptr<f32>, #[[LAST]]>
module {
  tt.func public @copy(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %s: i32, %t: i32) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %a = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %b = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %ss = tt.splat %s : i32 -> tensor<64x1xi32>
    %ts = tt.splat %t : i32 -> tensor<1x64xi32>
    %c = arith.muli %a, %ss : tensor<64x1xi32>
    %d = arith.muli %b, %ts : tensor<1x64xi32>
    %cb = tt.broadcast %c : tensor<64x1xi32> -> tensor<64x64xi32>
    %db = tt.broadcast %d : tensor<1x64xi32> -> tensor<64x64xi32>
    %o = arith.addi %cb, %db : tensor<64x64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %pp = tt.addptr %ps, %o : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %qq = tt.addptr %qs, %o : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %v = tt.load %pp : tensor<64x64x!tt.ptr<f32>>
    tt.store %qq, %v : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
