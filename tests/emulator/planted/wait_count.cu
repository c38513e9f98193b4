// Two groups of copies may be under way where only one may: the stage that is read is still being filled.
#include <cuda_pipeline_primitives.h>
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
  __pipeline_commit();
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    if (i + 1 < 4) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[(i + 1) * 64 + t], 4);
    __pipeline_commit();
    if (FIXED) __pipeline_wait_prior(1);
    else __pipeline_wait_prior(2);
    __syncthreads();
    out[i * 64 + t] = stage[i % 2][63 - t];  // found here
    __syncthreads();
  }
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
