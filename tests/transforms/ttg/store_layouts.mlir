// RUN: tilework opt %s -p tritongpu-store-layouts,tritongpu-remove-layout-conversions

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#turned = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sums = #ttg.slice<{dim = 1, parent = #rows}>
!H = tensor<128x64xf16, #mma>
!P = tensor<128x64x!tt.ptr<f16>, #rows>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Each warp keeps the rows that it has computed: no barrier, and rows as wide as before.
// CHECK: [[OWN:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @own_rows(
// CHECK: %[[X:.*]] = ttg.convert_layout %x : tensor<128x64xf16, #mma> -> tensor<128x64xf16, [[OWN]]>
// CHECK-NEXT: tt.store %{{.*}}, %[[X]] : tensor<128x64x!tt.ptr<f16>, [[OWN]]>
tt.func public @own_rows(%x: !H, %p: !tt.ptr<f16>) {
  %q = tt.splat %p : !tt.ptr<f16> -> !P
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %q, %y : !P
  tt.return
}

// A few sums: half a sector more costs less than two barriers.
// CHECK-LABEL: @sums(
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store %{{.*}}, %x : tensor<128x!tt.ptr<f32>, #ttg.slice<
tt.func public @sums(%x: tensor<128xf32, #sums>, %p: !tt.ptr<f32>) {
  %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #line>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #line>
  %a = tt.addptr %q, %i : tensor<128x!tt.ptr<f32>, #line>, tensor<128xi32, #line>
  %y = ttg.convert_layout %x : tensor<128xf32, #sums> -> tensor<128xf32, #line>
  tt.store %a, %y : tensor<128x!tt.ptr<f32>, #line>
  tt.return
}

// Columns that lie apart: each element would be a sector of its own.
// CHECK-LABEL: @columns(
// CHECK: ttg.convert_layout %x
// CHECK: tt.store {{.*}} : tensor<128x64x!tt.ptr<f16>, [[TURNED:#blocked[0-9]*]]>
tt.func public @columns(%x: tensor<128x64xf16, #rows>, %p: !tt.ptr<f16>) {
  %q = tt.splat %p : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #turned>
  %y = ttg.convert_layout %x : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #turned>
  tt.store %q, %y : tensor<128x64x!tt.ptr<f16>, #turned>
  tt.return
}

// Pointers that come from somewhere else would have to be moved as well.
// CHECK-LABEL: @given_pointers(
// CHECK: %[[Y:.*]] = ttg.convert_layout %x : {{.*}} -> tensor<128x64xf16, [[ROWS:#blocked[0-9]*]]>
// CHECK-NEXT: tt.store %p, %[[Y]] : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
tt.func public @given_pointers(%x: !H, %p: !P) {
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %p, %y : !P
  tt.return
}

// The conversion is needed anyway.
// CHECK-LABEL: @two_users(
// CHECK: %[[Y:.*]] = ttg.convert_layout %x : {{.*}} -> tensor<128x64xf16, [[ROWS]]>
// CHECK: tt.store %{{.*}}, %[[Y]] : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
tt.func public @two_users(%x: !H, %p: !tt.ptr<f16>) -> tensor<128x64xf16, #rows> {
  %q = tt.splat %p : !tt.ptr<f16> -> !P
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %q, %y : !P
  tt.return %y : tensor<128x64xf16, #rows>
}

// What is stored is read again, through another parameter, which may be the same memory.
// CHECK-LABEL: @read_by_another_name(
// CHECK: tt.store {{.*}} : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
// CHECK: tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
tt.func public @read_by_another_name(%x: !H, %p: !tt.ptr<f16>, %o: !tt.ptr<f16>) -> tensor<128x64xf16, #rows> {
  %q = tt.splat %p : !tt.ptr<f16> -> !P
  %r = tt.splat %o : !tt.ptr<f16> -> !P
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %q, %y : !P
  %z = tt.load %r : !P
  tt.return %z : tensor<128x64xf16, #rows>
}

// What was read before the store is at hand then.
// CHECK-LABEL: @read_before(
// CHECK: tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
// CHECK: tt.store {{.*}} : tensor<128x64x!tt.ptr<f16>, [[OWN]]>
tt.func public @read_before(%x: !H, %p: !tt.ptr<f16>, %o: !tt.ptr<f16>) -> tensor<128x64xf16, #rows> {
  %q = tt.splat %p : !tt.ptr<f16> -> !P
  %r = tt.splat %o : !tt.ptr<f16> -> !P
  %z = tt.load %r : !P
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %q, %y : !P
  tt.return %z : tensor<128x64xf16, #rows>
}

// What is stored is read again: each thread reads what it has written itself.
// CHECK-LABEL: @read_again(
// CHECK: tt.store {{.*}} : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
// CHECK: tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>, [[ROWS]]>
tt.func public @read_again(%x: !H, %p: !tt.ptr<f16>) -> tensor<128x64xf16, #rows> {
  %q = tt.splat %p : !tt.ptr<f16> -> !P
  %y = ttg.convert_layout %x : !H -> tensor<128x64xf16, #rows>
  tt.store %q, %y : !P
  %z = tt.load %q : !P
  tt.return %z : tensor<128x64xf16, #rows>
}
}
