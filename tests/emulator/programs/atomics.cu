// Atomic operations on shared and global memory.
extern "C" __global__ void histogram(const unsigned char* x, unsigned* out, int n) {
  __shared__ unsigned bins[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i] % 64], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void all_kinds(const int* x, int* out, unsigned long long* wide, float* real) {
  int value = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&out[0], value);
  atomicMin(&out[1], value);
  atomicMax(&out[2], value);
  atomicAnd(&out[3], value | 0xffff0000);
  atomicOr(&out[4], value & 0xff);
  atomicXor(&out[5], value);
  atomicSub(&out[6], 2);
  atomicAdd(wide, (unsigned long long)value * 4000000000ULL);
  atomicAdd(real, (float)(value & 15));
}

extern "C" __global__ void compare_and_swap(const float* x, int* most) {
  float value = x[threadIdx.x];
  int old = *(volatile int*)most;
  while (__int_as_float(old) < value) {
    int seen = atomicCAS(most, old, __float_as_int(value));
    if (seen == old) break;
    old = seen;
  }
}
