// RUN: tilework opt %s -p symbol-dce

// Functions that no public function reaches go.

// CHECK-LABEL: tt.func public @kernel(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.call @used(%x) : (f32) -> f32
// CHECK-NEXT: tt.return %[[A]] : f32
tt.func public @kernel(%x: f32) -> f32 {
  %r = tt.call @used(%x) : (f32) -> f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func private @used(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.call @also_used(%a) : (f32) -> f32
// CHECK-NEXT: tt.return %[[A]] : f32
tt.func private @used(%a: f32) -> f32 {
  %0 = tt.call @also_used(%a) : (f32) -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func private @also_used(
// CHECK-NEXT: tt.return %a : f32
tt.func private @also_used(%a: f32) -> f32 {
  tt.return %a : f32
}

// CHECK-NOT: @unused
tt.func private @unused(%a: f32) -> f32 {
  tt.return %a : f32
}

// CHECK-NOT: @calls_itself
tt.func private @calls_itself(%a: f32) -> f32 {
  %0 = tt.call @calls_itself(%a) : (f32) -> f32
  tt.return %0 : f32
}
