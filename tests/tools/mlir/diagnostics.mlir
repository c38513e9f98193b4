// RUN: tilework opt %s --split-input-file --verify-diagnostics

tt.func @range() {
  // expected-error @+1 {{tt.make_range}}
  %0 = tt.make_range {end = 8 : i32, start = 8 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func @syntax() {
  // expected-error @below {{is used but not defined}}
  %0 = arith.addi %nowhere, %nowhere : i32
  tt.return
}

// -----

tt.func @load(%p: !tt.ptr<f32>) {
  // expected-error @below {{bit}}
  %0 = tt.bitcast %p : !tt.ptr<f32> -> i32
  tt.return
}
