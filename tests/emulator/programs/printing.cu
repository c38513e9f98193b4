// Output and assertions.
#include <cassert>
#include <cstdio>

extern "C" __global__ void report(const int* x, const double* y) {
  int t = threadIdx.x;
  if (t < 3) printf("thread %d: %5d|%-4u|%x %s %.3f %c%%\n", t, x[t], (unsigned)x[t] & 255u, x[t], t ? "later" : "first", y[t], 'a' + t);
  if (t == 5) printf("%lld %e\n", (long long)x[t] * 10000000000LL, y[t]);
}

extern "C" __global__ void positive(const int* x, int* out) {
  int t = threadIdx.x;
  assert(x[t] > 0);
  out[t] = x[t] * 2;
}
