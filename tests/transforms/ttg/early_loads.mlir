// RUN: tilework opt %s -p tritongpu-early-loads

#b = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!P = tensor<4096x!tt.ptr<bf16>, #b>
!X = tensor<4096xbf16, #b>
!F = tensor<4096xf32, #b>
!SP = tensor<512x!tt.ptr<bf16>, #b>
!SX = tensor<512xbf16, #b>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Six blocks have room for both, and their rows keep DRAM busy. What the sum decides stays, and what is behind a write.
// CHECK-LABEL: @moves(
// CHECK-NEXT: %x = tt.load %p :
// CHECK-NEXT: %f = arith.extf %x :
// CHECK-NEXT: %q = tt.splat %w :
// CHECK-NEXT: %y = tt.load %q :
// CHECK-NEXT: %s = "tt.reduce"(%f)
// CHECK: %t = tt.addptr %w, %i :
// CHECK: %z = tt.load %r :
// CHECK: tt.store
// CHECK-NEXT: %late = tt.load %q :
tt.func public @moves(%p: !P, %w: !tt.ptr<bf16>) -> !F {
  %x = tt.load %p : !P
  %f = arith.extf %x : !X to !F
  %s = "tt.reduce"(%f) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (!F) -> f32
  %q = tt.splat %w : !tt.ptr<bf16> -> !P
  %y = tt.load %q : !P
  %i = arith.fptosi %s : f32 to i32
  %t = tt.addptr %w, %i : !tt.ptr<bf16>, i32
  %r = tt.splat %t : !tt.ptr<bf16> -> !P
  %z = tt.load %r : !P
  tt.store %p, %z : !P
  %late = tt.load %q : !P
  %g = arith.extf %y : !X to !F
  %h = arith.extf %late : !X to !F
  %k = arith.addf %f, %g : !F
  %l = arith.addf %k, %h : !F
  tt.return %l : !F
}

// So few bytes that the loads of all blocks leave DRAM idle anyway: the registers are better used for more blocks.
// CHECK-LABEL: @too_little(
// CHECK: "tt.reduce"
// CHECK: %y = tt.load %q :
tt.func public @too_little(%p: !SP, %q: !SP) -> !SX {
  %x = tt.load %p : !SP
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tt.reduce.return %c : bf16
  }) : (!SX) -> bf16
  %y = tt.load %q : !SP
  %k = arith.addf %x, %y : !SX
  tt.return %k : !SX
}

// A scan has a result of as many registers as its operand: with all three tiles five blocks fit, whose rows leave DRAM
// idle.
// CHECK-LABEL: @beside_a_scan(
// CHECK: "tt.scan"
// CHECK: %y = tt.load %q :
tt.func public @beside_a_scan(%p: !P, %q: !P) -> !F {
  %x = tt.load %p : !P
  %f = arith.extf %x : !X to !F
  %s = "tt.scan"(%f) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.scan.return %c : f32
  }) : (!F) -> !F
  %y = tt.load %q : !P
  %g = arith.extf %y : !X to !F
  %k = arith.addf %f, %g : !F
  %l = arith.addf %k, %s : !F
  tt.return %l : !F
}

}
