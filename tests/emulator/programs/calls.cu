// Functions that stay functions, structures by value, switches, arrays of one thread, function pointers.
struct Shape {
  int rows, columns;
  float scale;
  short flags[3];
};

__noinline__ __device__ float polynomial(float x, const float* c, int n) {
  float y = 0.0f;
  for (int i = n - 1; i >= 0; i--) y = fmaf(y, x, c[i]);
  return y;
}

__noinline__ __device__ Shape wider(Shape s, int by) {
  s.columns += by;
  s.scale *= 2.0f;
  s.flags[1] = (short)(s.rows - by);
  return s;
}

extern "C" __global__ void functions(const float* x, float* out, Shape s) {
  const float c[4] = {1.0f, -0.5f, 0.25f, s.scale};
  int t = threadIdx.x;
  Shape w = wider(s, t);
  float y = polynomial(x[t], c, 4);
  if (t % 3 == 0) y = polynomial(y, c + 1, 2);
  out[t] = y + w.columns * w.scale + w.flags[1];
}

extern "C" __global__ void choose(const int* x, int* out) {
  int t = threadIdx.x, v = x[t];
  switch (v) {
    case 0: out[t] = v + 10; break;
    case 1: out[t] = v * v + t; break;
    case 2: out[t] = __clz(t + 1); break;
    case 3: out[t] = t ^ 0x55; break;
    case 4: out[t] = __popc(t); break;
    case 5: out[t] = t << 3;  // falls through
    case 6: out[t] = (t << 3) - v; break;
    case 7: out[t] = t / 7; break;
    case 8: out[t] = -t; break;
    default: out[t] = -1;
  }
}

extern "C" __global__ void sort_each(const int* x, int* out) {
  int own[8];
  int t = threadIdx.x;
  for (int i = 0; i < 8; i++) own[i] = x[t * 8 + i];
  for (int i = 1; i < 8; i++) {
    int v = own[i], j = i;
    while (j > 0 && own[j - 1] > v) {
      own[j] = own[j - 1];
      j--;
    }
    own[j] = v;
  }
  for (int i = 0; i < 8; i++) out[t * 8 + i] = own[(i + t) % 8];
}

typedef int (*Function)(int, int);
__noinline__ __device__ int plus(int a, int b) { return a + b; }
__noinline__ __device__ int times(int a, int b) { return a * b; }
__noinline__ __device__ int minus(int a, int b) { return a - b; }
__device__ Function table[3] = {plus, times, minus};
__constant__ int weights[4] = {3, 5, 7, 11};

extern "C" __global__ void pointers(const int* x, int* out) {
  int t = threadIdx.x;
  out[t] = table[t % 3](x[t], weights[t % 4]);
}
