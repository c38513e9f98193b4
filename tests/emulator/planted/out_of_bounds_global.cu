// The last block is only partly needed and nobody checks.
template <bool FIXED>
__device__ void run(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (FIXED && i >= n) return;
  out[i] = 2.0f * x[i];  // found here
}
extern "C" __global__ void bug(const float* x, float* out, int n) { run<false>(x, out, n); }
extern "C" __global__ void fixed(const float* x, float* out, int n) { run<true>(x, out, n); }
