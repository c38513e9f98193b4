// What lanes of a warp do together.
extern "C" __global__ void votes(const int* x, unsigned* out) {
  int t = threadIdx.x, value = x[t];
  unsigned odd = __ballot_sync(0xffffffffu, value & 1);
  int all = __all_sync(0xffffffffu, value > -100), any = __any_sync(0xffffffffu, value == 7);
  unsigned same = __match_any_sync(0xffffffffu, value & 3);
  out[4 * t] = odd;
  out[4 * t + 1] = all * 2 + any;
  out[4 * t + 2] = same;
  out[4 * t + 3] = __popc(odd & ((1u << (t % 32)) - 1));
}

extern "C" __global__ void shuffles(const int* x, int* out) {
  int t = threadIdx.x, value = x[t];
  out[t] = __shfl_sync(0xffffffffu, value, 5);
  out[t + 64] = __shfl_up_sync(0xffffffffu, value, 3);
  out[t + 128] = __shfl_down_sync(0xffffffffu, value, 3, 8);
  out[t + 192] = __shfl_xor_sync(0xffffffffu, value, 12, 16);
  out[t + 256] = __shfl_sync(0xffffffffu, value, value & 31);
  long long wide = __shfl_xor_sync(0xffffffffu, (long long)value * 5000000000LL, 1);
  out[t + 320] = (int)(wide / 5000000000LL);
}

extern "C" __global__ void divergent(const int* x, int* out) {
  int t = threadIdx.x, value = x[t], steps = 0;
  if (value % 2 == 0) {
    unsigned mask = __activemask();
    value += __reduce_add_sync(mask, 1);
  } else {
    while (value != 1) {
      value = value % 2 ? 3 * value + 1 : value / 2;
      steps++;
      if (steps > 60) break;
    }
  }
  __syncwarp();
  out[t] = __shfl_xor_sync(0xffffffffu, value + steps, 1);
}

extern "C" __global__ void exchange(const int* x, int* out) {
  __shared__ int words[64];
  int t = threadIdx.x, warp = t / 32 * 32;
  words[t] = x[t] * 3;
  __syncwarp();
  out[t] = words[warp + (t + 7) % 32];
  __syncwarp();
  words[t] = out[t] + 1;
  __syncwarp();
  out[t] += words[warp + (t + 31) % 32];
}
