module {
  tt.func private @sq(%arg0: f32) -> f32 attributes {noinline = true} {
    %0 = arith.mulf %arg0, %arg0 : f32
    tt.return %0 : f32
  }
  tt.func public @casts(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: i64, %arg2: f32, %arg3: tensor<64xf32>, %arg4: i32) attributes {noinline = false} {
    %0 = tt.int_to_ptr %arg1 : i64 -> !tt.ptr<f32>
    %1 = tt.ptr_to_int %arg0 : !tt.ptr<f32> -> i64
    %2 = tt.bitcast %arg2 : f32 -> i32
    %3 = tt.fp_to_fp %arg3, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
    %4 = tt.fp_to_fp %3 {foo = 1 : i32} : tensor<64xf8E5M2> -> tensor<64xf32>
    %5 = tt.clampf %arg2, %arg2, %arg2, propagateNan = all : f32
    %6 = tt.clampf %arg3, %arg3, %arg3, propagateNan = none : tensor<64xf32>
    %7 = tt.precise_sqrt %arg3 : tensor<64xf32>
    %8 = tt.precise_divf %arg3, %7 : tensor<64xf32>
    %9 = tt.mulhiui %arg4, %arg4 : i32
    %10 = tt.addptr %arg0, %arg4 {tt.divisibility = dense<16> : tensor<1xi32>} : !tt.ptr<f32>, i32
    %11 = tt.extern_elementwise %arg3, %arg3 {libname = "lib", libpath = "", pure = true, symbol = "__nv_powf"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %12:2 = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,=r,r", packed_element = 2 : i32, pure = false} %arg3, %arg3 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>, tensor<64xi32>
    %13 = tt.elementwise_inline_asm "mov.u32 $0, %smid;\0A\09" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32
    %14 = "tt.map_elementwise"(%arg3) <{pack = 2 : i32}> ({
    ^bb0(%arg5: f32, %arg6: f32):
      tt.map_elementwise.return %arg5, %arg6 : f32, f32
    }) : (tensor<64xf32>) -> tensor<64xf32>
    %15 = tt.call @sq(%arg2) : (f32) -> f32
    tt.return
  }
  tt.func public @mem(%arg0: !tt.ptr<f32>, %arg1: tensor<64x!tt.ptr<f32>>, %arg2: tensor<64xi1>, %arg3: tensor<64xf32>, %arg4: i64, %arg5: i32, %arg6: i1, %arg7: tensor<64xi32>) {
    %0 = tt.load %arg0 : !tt.ptr<f32>
    %1 = tt.load %arg1, %arg2 : tensor<64x!tt.ptr<f32>>
    %2 = tt.load %arg1, %arg2, %arg3 cacheModifier = ca evictionPolicy = evict_first {isVolatile = true} : tensor<64x!tt.ptr<f32>>
    %3 = tt.load %arg1 evictionPolicy = evict_last : tensor<64x!tt.ptr<f32>>
    tt.store %arg1, %arg3 : tensor<64x!tt.ptr<f32>>
    tt.store %arg1, %arg3, %arg2 cacheModifier = wb evictionPolicy = evict_last : tensor<64x!tt.ptr<f32>>
    tt.store %arg0, %0, %arg6 : !tt.ptr<f32>
    %4 = tt.atomic_rmw fadd, acq_rel, gpu, %arg1, %arg3, %arg2 : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
    %5 = tt.atomic_rmw fadd, relaxed, sys, %arg0, %0 : (!tt.ptr<f32>, f32) -> f32
    %6 = tt.bitcast %arg0 : !tt.ptr<f32> -> !tt.ptr<i32>
    %7 = tt.atomic_cas acquire, cta, %6, %arg5, %arg5 : (!tt.ptr<i32>, i32, i32) -> i32
    %8 = tt.make_tensor_ptr %arg0, [%arg4, %arg4], [%arg4, %arg4], [%arg5, %arg5] {order = array<i32: 1, 0>} : <tensor<64x32xf32>>
    %9 = tt.advance %8, [%arg5, %arg5] : <tensor<64x32xf32>>
    %10 = tt.load %9 {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<64x32xf32>>
    tt.store %9, %10 {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<64x32xf32>>
    %11 = tt.make_tensor_descriptor %arg0, [%arg5, %arg5], [%arg4, %arg4] : <f32>, <tensor<1x32xf32>>
    %12 = tt.make_tensor_descriptor %arg0, [%arg5, %arg5], [%arg4, %arg4] {padding = 2 : i32} : <f32>, <tensor<1x32xf32>>
    %13 = tt.descriptor_load %11[%arg5, %arg5] : !tt.tensordesc<tensor<1x32xf32>> -> tensor<1x32xf32>
    %14 = tt.descriptor_load %11[%arg5, %arg5] cacheModifier = cg evictionPolicy = evict_first : !tt.tensordesc<tensor<1x32xf32>> -> tensor<32xf32>
    tt.descriptor_store %11[%arg5, %arg5], %13 : !tt.tensordesc<tensor<1x32xf32>>, tensor<1x32xf32>
    tt.descriptor_reduce add, %11[%arg5, %arg5], %13 : !tt.tensordesc<tensor<1x32xf32>>, tensor<1x32xf32>
    %15 = tt.descriptor_gather %11[%arg7, %arg5] : (!tt.tensordesc<tensor<1x32xf32>>, tensor<64xi32>, i32) -> tensor<64x32xf32>
    tt.descriptor_scatter %11[%arg7, %arg5], %15 : !tt.tensordesc<tensor<1x32xf32>>, tensor<64xi32>, i32, tensor<64x32xf32>
    tt.return
  }
  tt.func public @shape(%arg0: f32, %arg1: tensor<64xf32>, %arg2: tensor<1xf32>) {
    %0 = tt.splat %arg0 : f32 -> tensor<4x16xf32>
    %1 = tt.unsplat %arg2 : tensor<1xf32>
    %2 = tt.expand_dims %arg1 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %3 = tt.reshape %arg1 : tensor<64xf32> -> tensor<4x16xf32>
    %4 = tt.reshape %arg1 allow_reorder : tensor<64xf32> -> tensor<4x16xf32>
    %5 = tt.reshape %arg1 allow_reorder efficient_layout : tensor<64xf32> -> tensor<4x16xf32>
    %6 = tt.broadcast %2 : tensor<1x64xf32> -> tensor<4x64xf32>
    %7 = tt.cat %arg1, %arg1 : tensor<64xf32> -> tensor<128xf32>
    %8 = tt.join %arg1, %arg1 : tensor<64xf32> -> tensor<64x2xf32>
    %outLHS, %outRHS = tt.split %8 : tensor<64x2xf32> -> tensor<64xf32>
    %9 = tt.trans %3 {order = array<i32: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
    %10 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    tt.return
  }
  tt.func public @compute(%arg0: tensor<16x32xf16>, %arg1: tensor<32x16xf16>, %arg2: tensor<16x16xf32>, %arg3: tensor<16x32xi8>, %arg4: tensor<32x16xf8E4M3FN>, %arg5: tensor<16x1xi8>, %arg6: tensor<64xi32>, %arg7: tensor<64xi1>, %arg8: i32, %arg9: tensor<128x16xf8E4M3FN>, %arg10: tensor<16x64xi8>, %arg11: tensor<16x4xi8>) {
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id z : i32
    %2 = tt.get_num_programs y : i32
    %3 = tt.dot %arg0, %arg1, %arg2 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
    %4 = tt.dot %arg0, %arg1, %arg2, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
    %5 = tt.dot_scaled %arg10 scale %arg11, %arg9, %arg2 lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<16x64xi8>, tensor<16x4xi8> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>
    %6 = tt.dot_scaled %arg10 scale %arg11, %arg9 scale %arg11, %arg2 lhs = e2m1 rhs = e4m3 {fastMath = true} : tensor<16x64xi8>, tensor<16x4xi8> * tensor<128x16xf8E4M3FN>, tensor<16x4xi8> -> tensor<16x16xf32>
    %7 = "tt.reduce"(%arg2) <{axis = 1 : i32}> ({
    ^bb0(%arg12: f32, %arg13: f32):
      %20 = arith.addf %arg12, %arg13 : f32
      tt.reduce.return %20 : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %8:2 = "tt.reduce"(%arg6, %arg6) <{axis = 0 : i32}> ({
    ^bb0(%arg12: i32, %arg13: i32, %arg14: i32, %arg15: i32):
      tt.reduce.return %arg12, %arg13 : i32, i32
    }) : (tensor<64xi32>, tensor<64xi32>) -> (i32, i32)
    %9 = "tt.scan"(%arg6) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg12: i32, %arg13: i32):
      tt.scan.return %arg12 : i32
    }) : (tensor<64xi32>) -> tensor<64xi32>
    %10 = tt.histogram %arg6 : tensor<64xi32> -> tensor<16xi32>
    %11 = tt.histogram %arg6, %arg7 : tensor<64xi32> -> tensor<16xi32>
    %12 = tt.gather %arg6[%arg6] {axis = 0 : i32} : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %13 = tt.gather %arg6[%arg6] {axis = 0 : i32, efficient_layout} : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    tt.print " x: " {hex = false, isSigned = array<i32: 1, 0>} : %arg8, %arg6 : i32, tensor<64xi32>
    tt.print "no" {hex = true, isSigned = array<i32>}
    tt.assert %arg7, "bad \22quote\22" : tensor<64xi1>
    ttg.barrier all
    %14 = arith.cmpi slt, %arg8, %arg8 : i32
    llvm.intr.assume %14 : i1
    %15 = arith.select %14, %arg8, %arg8 : i32
    %16 = arith.select %arg7, %arg6, %arg6 : tensor<64xi1>, tensor<64xi32>
    %17 = arith.select %14, %arg6, %arg6 : tensor<64xi32>
    %18 = arith.remf %arg2, %arg2 : tensor<16x16xf32>
    %19 = ub.poison : tensor<16xf32>
    tt.return
  }
}
