// RUN: tilework opt %s -p tritongpu-allocate-warp-groups


// CHECK: ttg.maxnreg = 168 : i32
// CHECK-SAME: "ttg.total-num-warps" = 12 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Eight more warps, as the first op needs with two idle ones; the second op has idle ones, too. Groups share registers.
// CHECK-LABEL: @k(
// CHECK-NEXT: ttg.warp_specialize(%x) attributes {actualRegisters = array<i32: 400, 24, 80, 80>, requestedRegisters = array<i32: 24, 80, 16>, warpGroupStartIds = array<i32: 4, 8, 10>}
// CHECK-NEXT: default {
// CHECK-NEXT:   ttg.warp_yield
// CHECK:      partition0(%c: i32) num_warps(4) {
// CHECK-NEXT:   ttg.warp_return
// CHECK:      partition1(%c: i32) num_warps(2) {
// CHECK-NEXT:   ttg.warp_return
// CHECK:      partition2(%arg1: i32) num_warps(2) {
// CHECK-NEXT:   ttg.warp_return
// CHECK-NEXT: } :
// CHECK-NEXT: ttg.warp_specialize(%x) attributes {warpGroupStartIds = array<i32: 10, 4, 8, 11>}
// CHECK-NEXT: default {
// CHECK-NEXT:   ttg.warp_yield
// CHECK:      partition0(%c: i32) num_warps(1) {
// CHECK-NEXT:   ttg.warp_return
// CHECK:      partition1(%arg1: i32) num_warps(4) {
// CHECK-NEXT:   ttg.warp_return
// CHECK:      partition2(%arg1: i32) num_warps(2) {
// CHECK-NEXT:   ttg.warp_return
// CHECK:      partition3(%arg1: i32) num_warps(1) {
// CHECK-NEXT:   ttg.warp_return
// CHECK-NEXT: } :
// CHECK-NEXT: tt.return
  tt.func public @k(%x: i32) {
    ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32: 24, 80>}
    default {
      ttg.warp_yield
    }
    partition0(%c: i32) num_warps(4) {
      ttg.warp_return
    }
    partition1(%c: i32) num_warps(2) {
      ttg.warp_return
    } : (i32) -> ()
    ttg.warp_specialize(%x)
    default {
      ttg.warp_yield
    }
    partition0(%c: i32) num_warps(1) {
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
  // Nothing to do.
// CHECK-LABEL: @plain(
// CHECK-NEXT: tt.return
  tt.func public @plain(%x: i32) {
    tt.return
  }  // More than there is: all warps keep their share.
// CHECK-LABEL: @greedy(
// CHECK-NEXT: ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32: 248, 248>, warpGroupStartIds = array<i32: 4, 8>}
  tt.func public @greedy(%x: i32) {
    ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32: 248, 248>}
    default {
      ttg.warp_yield
    }
    partition0(%c: i32) num_warps(4) {
      ttg.warp_return
    }
    partition1(%c: i32) num_warps(4) {
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
}
