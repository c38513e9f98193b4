// Two arrays in dynamic shared memory: the second one starts before the first one ends.
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  extern __shared__ float memory[];
  float *a = memory, *b = memory + (FIXED ? 64 : 48);
  int t = threadIdx.x;
  if (t < 64) a[t] = x[t];
  else b[t - 64] = x[t] + 1.0f;  // found here
  __syncthreads();
  out[t] = t < 64 ? a[63 - t] : b[127 - t];
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
