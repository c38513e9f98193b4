// RUN: tilework opt %s -p tritongpu-global-scratch-memory-allocation


// CHECK: ttg.global_scratch_memory_alignment = 128 : i32
// CHECK-SAME: ttg.global_scratch_memory_size = 512 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Its own 100 bytes, rounded up.
// CHECK-LABEL: @helper(
// CHECK-SAME:  {noinline = true, ttg.global_scratch_memory_alignment = 8 : i32, ttg.global_scratch_memory_size = 104 : i32}
// CHECK-NEXT: %0 = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 100 : i32, ttg.global_scratch_memory_offset = 0 : i32}
// CHECK-NEXT: tt.return
  tt.func private @helper() attributes {noinline = true} {
    %0 = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 100 : i32} : !tt.ptr<i8>
    tt.return
  }
  // Calls of a function that needs nothing get no offset.
// CHECK-LABEL: @none(
// CHECK-SAME:  {noinline = true, ttg.global_scratch_memory_alignment = 1 : i32, ttg.global_scratch_memory_size = 0 : i32}
// CHECK-NEXT: tt.return
  tt.func private @none() attributes {noinline = true} {
    tt.return
  }
  // One after the other, aligned; the module has what its kernel needs.
// CHECK-LABEL: @k(
// CHECK-SAME:  {ttg.global_scratch_memory_alignment = 128 : i32, ttg.global_scratch_memory_size = 512 : i32}
// CHECK-NEXT: %0 = ttg.global_scratch_alloc {alignment = 1 : i32, nbytes = 10 : i32, ttg.global_scratch_memory_offset = 0 : i32}
// CHECK-NEXT: %1 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32, ttg.global_scratch_memory_offset = 128 : i32}
// CHECK-NEXT: tt.call @helper() {ttg.global_scratch_memory_offset = 256 : i32}
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT:   %2 = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 4 : i32, ttg.global_scratch_memory_offset = 368 : i32}
// CHECK-NEXT:   tt.call @helper() {ttg.global_scratch_memory_offset = 376 : i32}
// CHECK-NEXT:   tt.call @none() :
// CHECK:      tt.return
  tt.func public @k(%n: i32, %c: i1) {
    %0 = ttg.global_scratch_alloc {alignment = 1 : i32, nbytes = 10 : i32} : !tt.ptr<i8>
    %1 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    tt.call @helper() : () -> ()
    scf.if %c {
      %2 = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 4 : i32} : !tt.ptr<i8>
      tt.call @helper() : () -> ()
      tt.call @none() : () -> ()
    }
    tt.return
  }
}
