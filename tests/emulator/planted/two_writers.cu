// Pairs of threads store different values at one place.
template <bool FIXED>
__device__ void run(const int* x, int* out) {
  int t = threadIdx.x;
  if (!FIXED || t % 2 == 0) out[t / 2] = x[t];  // found here
}
extern "C" __global__ void bug(const int* x, int* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const int* x, int* out) { run<true>(x, out); }
