// Each thread waits for its own copies and then reads those of another thread.
#include <cuda_pipeline_primitives.h>
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float words[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&words[t], &x[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (FIXED) __syncthreads();
  out[t] = words[63 - t];  // found here
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
