// cp.async: a ring of three stages, each thread copies what it uses, or what another one uses.
#include <cuda_pipeline_primitives.h>

extern "C" __global__ void own_copies(const float4* x, float4* out, int tiles) {
  __shared__ float4 stage[3][64];
  int t = threadIdx.x;
  for (int i = 0; i < 2; i++) {
    if (i < tiles) __pipeline_memcpy_async(&stage[i][t], &x[i * 64 + t], 16);
    __pipeline_commit();
  }
  for (int i = 0; i < tiles; i++) {
    if (i + 2 < tiles) __pipeline_memcpy_async(&stage[(i + 2) % 3][t], &x[(i + 2) * 64 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    float4 v = stage[i % 3][t];
    out[i * 64 + t] = make_float4(v.x + 1.0f, v.y * 2.0f, v.z - v.w, v.w);
  }
}

extern "C" __global__ void shared_copies(const float* x, float* out, int tiles) {
  __shared__ float stage[2][128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
  __pipeline_commit();
  for (int i = 0; i < tiles; i++) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[(i + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[i * 128 + t] = stage[i % 2][127 - t];
    __syncthreads();
  }
}

extern "C" __global__ void zero_fill(const float4* x, float4* out, int n) {
  __shared__ float4 rows[32];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&rows[t], t < n ? &x[t] : nullptr, 16, t < n ? 0 : 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = rows[t];
}
