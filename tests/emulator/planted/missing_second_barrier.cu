// A buffer is filled again while slower warps still read it: the loop has one barrier and needs two.
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float words[64];
  int t = threadIdx.x;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    words[t] = x[i * 64 + t];  // found here
    __syncthreads();
    sum += words[63 - t];
    if (FIXED) __syncthreads();
  }
  out[t] = sum;
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
