// Barriers of a part of the block, counting barriers, and blocks that work together through global memory.
extern "C" __global__ void producer_consumer(const int* x, int* out, int rounds) {
  __shared__ int words[64];
  int t = threadIdx.x;
  if (t < 64) {
    for (int i = 0; i < rounds; i++) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      words[t] = x[i * 64 + t] + 1;
      asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  } else {
    for (int i = 0; i < rounds; i++) {
      asm volatile("bar.arrive 1, 128;" ::: "memory");
      asm volatile("bar.sync 2, 128;" ::: "memory");
      out[i * 64 + t - 64] = words[127 - t] * 2;
    }
  }
}

extern "C" __global__ void counting(const int* x, int* out) {
  int t = threadIdx.x;
  int odd = __syncthreads_count(x[t] & 1), all = __syncthreads_and(x[t] > 0), any = __syncthreads_or(x[t] == 5);
  out[t] = odd * 100 + all * 10 + any;
}

__device__ unsigned arrived;

extern "C" __global__ void last_block(const float* x, float* parts, float* out) {
  __shared__ bool is_last;
  __shared__ float sums[64];
  int t = threadIdx.x;
  sums[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = sums[0];
    __threadfence();
    is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && t == 0) {
    __threadfence();
    float total = 0.0f;
    for (int i = 0; i < gridDim.x; i++) total += parts[i];
    *out = total;
  }
}
