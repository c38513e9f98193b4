// A matrix product with three stages, in the text of the first compilers on MLIR: memory is tensors with a shared
// encoding, every insert_slice_async is a group of its own, dot_op has no kWidth.
#blocked = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #triton_gpu.mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2]}>
#shared = #triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#shared1 = #triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
module attributes {"triton_gpu.num-warps" = 4 : i32, "triton_gpu.compute-capability" = 80 : i32} {
  func.func public @matmul(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
    %c3_i32 = arith.constant 3 : i32
    %c32_i32 = arith.constant 32 : i32
    %c64_i32 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %zero_a = arith.constant dense<0.000000e+00> : tensor<64x32xf16, #blocked>
    %zero_b = arith.constant dense<0.000000e+00> : tensor<32x64xf16, #blocked1>
    %a_step = arith.constant dense<32> : tensor<64x32xi32, #blocked>
    %b_step = arith.constant dense<2048> : tensor<32x64xi32, #blocked1>
    // 64 rows of A with K columns each, K rows of B with 64 columns each
    %row = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>
    %a_k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>
    %b_k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #triton_gpu.slice<{dim = 1, parent = #blocked1}>>
    %column = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #triton_gpu.slice<{dim = 0, parent = #blocked1}>>
    %row_2d = tt.expand_dims %row {axis = 1 : i32} : (tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>) -> tensor<64x1xi32, #blocked>
    %a_k_2d = tt.expand_dims %a_k {axis = 0 : i32} : (tensor<32xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>) -> tensor<1x32xi32, #blocked>
    %b_k_2d = tt.expand_dims %b_k {axis = 1 : i32} : (tensor<32xi32, #triton_gpu.slice<{dim = 1, parent = #blocked1}>>) -> tensor<32x1xi32, #blocked1>
    %column_2d = tt.expand_dims %column {axis = 0 : i32} : (tensor<64xi32, #triton_gpu.slice<{dim = 0, parent = #blocked1}>>) -> tensor<1x64xi32, #blocked1>
    %a_width = tt.splat %K : (i32) -> tensor<64x1xi32, #blocked>
    %a_row = arith.muli %row_2d, %a_width : tensor<64x1xi32, #blocked>
    %a_rows = tt.broadcast %a_row : (tensor<64x1xi32, #blocked>) -> tensor<64x32xi32, #blocked>
    %a_columns = tt.broadcast %a_k_2d : (tensor<1x32xi32, #blocked>) -> tensor<64x32xi32, #blocked>
    %a_offsets = arith.addi %a_rows, %a_columns : tensor<64x32xi32, #blocked>
    %a_base = tt.splat %a_ptr : (!tt.ptr<f16>) -> tensor<64x32x!tt.ptr<f16>, #blocked>
    %a_ptrs = tt.addptr %a_base, %a_offsets : tensor<64x32x!tt.ptr<f16>, #blocked>
    %b_width = arith.constant dense<64> : tensor<32x1xi32, #blocked1>
    %b_row = arith.muli %b_k_2d, %b_width : tensor<32x1xi32, #blocked1>
    %b_rows = tt.broadcast %b_row : (tensor<32x1xi32, #blocked1>) -> tensor<32x64xi32, #blocked1>
    %b_columns = tt.broadcast %column_2d : (tensor<1x64xi32, #blocked1>) -> tensor<32x64xi32, #blocked1>
    %b_offsets = arith.addi %b_rows, %b_columns : tensor<32x64xi32, #blocked1>
    %b_base = tt.splat %b_ptr : (!tt.ptr<f16>) -> tensor<32x64x!tt.ptr<f16>, #blocked1>
    %b_ptrs = tt.addptr %b_base, %b_offsets : tensor<32x64x!tt.ptr<f16>, #blocked1>
    // two stages are started before the loop
    %a_left = tt.splat %K : (i32) -> tensor<64x32xi32, #blocked>
    %b_left = tt.splat %K : (i32) -> tensor<32x64xi32, #blocked1>
    %a_mask = "arith.cmpi"(%a_columns, %a_left) {predicate = 2 : i64} : (tensor<64x32xi32, #blocked>, tensor<64x32xi32, #blocked>) -> tensor<64x32xi1, #blocked>
    %b_k_rows = tt.broadcast %b_k_2d : (tensor<32x1xi32, #blocked1>) -> tensor<32x64xi32, #blocked1>
    %b_mask = arith.cmpi slt, %b_k_rows, %b_left : tensor<32x64xi32, #blocked1>
    %a_buffer = triton_gpu.alloc_tensor : tensor<3x64x32xf16, #shared>
    %b_buffer = triton_gpu.alloc_tensor : tensor<3x32x64xf16, #shared1>
    %a_first = triton_gpu.insert_slice_async %a_ptrs, %a_buffer, %c0_i32, %a_mask, %zero_a {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false, operand_segment_sizes = array<i32: 1, 1, 1, 1, 1>} : tensor<64x32x!tt.ptr<f16>, #blocked> -> tensor<3x64x32xf16, #shared>
    %b_first = triton_gpu.insert_slice_async %b_ptrs, %b_buffer, %c0_i32, %b_mask, %zero_b {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<32x64x!tt.ptr<f16>, #blocked1> -> tensor<3x32x64xf16, #shared1>
    %a_ptrs_1 = tt.addptr %a_ptrs, %a_step : tensor<64x32x!tt.ptr<f16>, #blocked>
    %b_ptrs_1 = tt.addptr %b_ptrs, %b_step : tensor<32x64x!tt.ptr<f16>, #blocked1>
    %left_1 = arith.subi %K, %c32_i32 : i32
    %a_left_1 = tt.splat %left_1 : (i32) -> tensor<64x32xi32, #blocked>
    %b_left_1 = tt.splat %left_1 : (i32) -> tensor<32x64xi32, #blocked1>
    %a_mask_1 = arith.cmpi slt, %a_columns, %a_left_1 : tensor<64x32xi32, #blocked>
    %b_mask_1 = arith.cmpi slt, %b_k_rows, %b_left_1 : tensor<32x64xi32, #blocked1>
    %a_second = triton_gpu.insert_slice_async %a_ptrs_1, %a_first, %c1_i32, %a_mask_1, %zero_a {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<64x32x!tt.ptr<f16>, #blocked> -> tensor<3x64x32xf16, #shared>
    %b_second = triton_gpu.insert_slice_async %b_ptrs_1, %b_first, %c1_i32, %b_mask_1, %zero_b {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<32x64x!tt.ptr<f16>, #blocked1> -> tensor<3x32x64xf16, #shared1>
    triton_gpu.async_wait {num = 2 : i32}
    %a_tile = tensor.extract_slice %a_second[0, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<3x64x32xf16, #shared> to tensor<64x32xf16, #shared>
    %b_tile = tensor.extract_slice %b_second[0, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<3x32x64xf16, #shared1> to tensor<32x64xf16, #shared1>
    %loop:9 = scf.for %k = %c0_i32 to %K step %c32_i32 iter_args(%acc = %zero, %a_at = %a_ptrs_1, %b_at = %b_ptrs_1, %a_all = %a_second, %b_all = %b_second, %a_now = %a_tile, %b_now = %b_tile, %insert = %c2_i32, %extract = %c1_i32) -> (tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<3x64x32xf16, #shared>, tensor<3x32x64xf16, #shared1>, tensor<64x32xf16, #shared>, tensor<32x64xf16, #shared1>, i32, i32) : i32 {
      %a = triton_gpu.convert_layout %a_now : (tensor<64x32xf16, #shared>) -> tensor<64x32xf16, #triton_gpu.dot_op<{opIdx = 0, parent = #mma}>>
      %b = triton_gpu.convert_layout %b_now : (tensor<32x64xf16, #shared1>) -> tensor<32x64xf16, #triton_gpu.dot_op<{opIdx = 1, parent = #mma}>>
      %sum = tt.dot %a, %b, %acc {allowTF32 = true, transA = false, transB = false} : tensor<64x32xf16, #triton_gpu.dot_op<{opIdx = 0, parent = #mma}>> * tensor<32x64xf16, #triton_gpu.dot_op<{opIdx = 1, parent = #mma}>> -> tensor<64x64xf32, #mma>
      %a_next = tt.addptr %a_at, %a_step : tensor<64x32x!tt.ptr<f16>, #blocked>
      %b_next = tt.addptr %b_at, %b_step : tensor<32x64x!tt.ptr<f16>, #blocked1>
      %ahead = arith.addi %k, %c64_i32 : i32
      %left = arith.subi %K, %ahead : i32
      %a_left_2 = tt.splat %left : (i32) -> tensor<64x32xi32, #blocked>
      %b_left_2 = tt.splat %left : (i32) -> tensor<32x64xi32, #blocked1>
      %a_mask_2 = arith.cmpi slt, %a_columns, %a_left_2 : tensor<64x32xi32, #blocked>
      %b_mask_2 = arith.cmpi slt, %b_k_rows, %b_left_2 : tensor<32x64xi32, #blocked1>
      %a_more = triton_gpu.insert_slice_async %a_next, %a_all, %insert, %a_mask_2, %zero_a {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<64x32x!tt.ptr<f16>, #blocked> -> tensor<3x64x32xf16, #shared>
      %b_more = triton_gpu.insert_slice_async %b_next, %b_all, %insert, %b_mask_2, %zero_b {axis = 0 : i32, cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<32x64x!tt.ptr<f16>, #blocked1> -> tensor<3x32x64xf16, #shared1>
      triton_gpu.async_wait {num = 2 : i32}
      %place = arith.index_cast %extract : i32 to index
      %a_then = tensor.extract_slice %a_more[%place, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<3x64x32xf16, #shared> to tensor<64x32xf16, #shared>
      %b_then = tensor.extract_slice %b_more[%place, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<3x32x64xf16, #shared1> to tensor<32x64xf16, #shared1>
      %insert_1 = arith.addi %insert, %c1_i32 : i32
      %insert_2 = arith.remsi %insert_1, %c3_i32 : i32
      %extract_1 = arith.addi %extract, %c1_i32 : i32
      %extract_2 = arith.remsi %extract_1, %c3_i32 : i32
      scf.yield %sum, %a_next, %b_next, %a_more, %b_more, %a_then, %b_then, %insert_2, %extract_2 : tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<3x64x32xf16, #shared>, tensor<3x32x64xf16, #shared1>, tensor<64x32xf16, #shared>, tensor<32x64xf16, #shared1>, i32, i32
    }
    triton_gpu.async_wait {num = 0 : i32}
    triton_gpu.dealloc_tensor %loop#3 : tensor<3x64x32xf16, #shared>
    triton_gpu.dealloc_tensor %loop#4 : tensor<3x32x64xf16, #shared1>
    %c = triton_gpu.convert_layout %loop#0 : (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #blocked1>
    %c_row = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked1}>>
    %c_row_2d = tt.expand_dims %c_row {axis = 1 : i32} : (tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked1}>>) -> tensor<64x1xi32, #blocked1>
    %c_width = arith.constant dense<64> : tensor<64x1xi32, #blocked1>
    %c_start = arith.muli %c_row_2d, %c_width : tensor<64x1xi32, #blocked1>
    %c_rows = tt.broadcast %c_start : (tensor<64x1xi32, #blocked1>) -> tensor<64x64xi32, #blocked1>
    %c_columns = tt.broadcast %column_2d : (tensor<1x64xi32, #blocked1>) -> tensor<64x64xi32, #blocked1>
    %c_offsets = arith.addi %c_rows, %c_columns : tensor<64x64xi32, #blocked1>
    %c_base = tt.splat %c_ptr : (!tt.ptr<f32>) -> tensor<64x64x!tt.ptr<f32>, #blocked1>
    %c_ptrs = tt.addptr %c_base, %c_offsets : tensor<64x64x!tt.ptr<f32>, #blocked1>
    tt.store %c_ptrs, %c : tensor<64x64xf32, #blocked1>
    return
  }
}
