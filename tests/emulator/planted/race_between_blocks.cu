// Blocks add to one number in global memory, each without an atomic operation.
template <bool FIXED>
__device__ void run(const int* x, int* out) {
  if (threadIdx.x != 0) return;
  if (FIXED) atomicAdd(out, x[blockIdx.x]);
  else *out += x[blockIdx.x];  // found here
}
extern "C" __global__ void bug(const int* x, int* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const int* x, int* out) { run<true>(x, out); }
