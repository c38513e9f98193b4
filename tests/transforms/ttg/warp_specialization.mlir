// RUN: tilework opt %s -p "nvgpu-warp-specialization{num-stages=3}"

// All warps run the whole loop; nothing else changes.
// CHECK-LABEL: @asked
// CHECK: scf.for %i = %{{.*}} to %n step %{{.*}} : i32 {
// CHECK-NEXT: tt.store %p, %i
// CHECK-NEXT: } {tt.num_stages = 4 : i32}
tt.func public @asked(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.num_stages = 4 : i32, tt.warp_specialize}
  tt.return
}
