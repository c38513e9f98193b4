// A neighbour's element is read before all warps have written theirs.
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float words[128];
  int t = threadIdx.x;
  words[t] = x[t];
  if (FIXED) __syncthreads();
  out[t] = words[127 - t];  // found here
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
