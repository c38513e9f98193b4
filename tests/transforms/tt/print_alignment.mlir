// RUN: tilework opt %s -p test-print-alignment

// CHECK:      @addresses
// CHECK-NEXT: tt.get_program_id => contiguity = [1], divisibility = [1], constancy = [1], constant_value = <none>
// CHECK-NEXT: arith.constant => contiguity = [1], divisibility = [64], constancy = [1], constant_value = 64
// CHECK-NEXT: arith.muli => contiguity = [1], divisibility = [64], constancy = [1], constant_value = <none>
// CHECK-NEXT: tt.splat => contiguity = [1], divisibility = [64], constancy = [64], constant_value = <none>
// CHECK-NEXT: tt.make_range => contiguity = [64], divisibility = [1073741824], constancy = [1], constant_value = <none>
// CHECK-NEXT: arith.addi => contiguity = [64], divisibility = [64], constancy = [1], constant_value = <none>
// CHECK-NEXT: tt.splat => contiguity = [1], divisibility = [16], constancy = [64], constant_value = <none>
// CHECK-NEXT: tt.addptr => contiguity = [64], divisibility = [16], constancy = [1], constant_value = <none>
// CHECK:      tt.func public @addresses
tt.func public @addresses(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %pid = tt.get_program_id x : i32
  %c = arith.constant 64 : i32
  %m = arith.muli %pid, %c : i32
  %s = tt.splat %m : i32 -> tensor<64xi32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %o = arith.addi %s, %r : tensor<64xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %b, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.return
}
