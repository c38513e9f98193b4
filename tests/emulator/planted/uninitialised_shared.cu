// The border of a tile is read and was never filled.
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float tile[66];
  int t = threadIdx.x;
  tile[t + 1] = x[t];
  if (FIXED && t < 2) tile[65 * t] = 0.0f;
  __syncthreads();
  out[t] = tile[t] + tile[t + 2];  // found here
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
