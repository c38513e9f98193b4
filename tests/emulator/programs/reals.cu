// Double and single precision: rounding modes, division, square roots, conversions, elementary functions.
extern "C" __global__ void doubles(const double* x, const double* y, double* out, int n) {
  int i = threadIdx.x;
  double a = x[i], b = y[i];
  out[i] = a / b;
  out[i + n] = sqrt(fabs(a));
  out[i + 2 * n] = fma(a, b, -a);
  out[i + 3 * n] = __dadd_rz(a, b) - __dadd_ru(a, b);
  out[i + 4 * n] = floor(a * 10.0) + ceil(b) + trunc(a) + rint(b * 3.0);
  out[i + 5 * n] = (double)(long long)(a * 1e10) + (double)(float)b;
  out[i + 6 * n] = fmin(a, b) * fmax(a, b);
  out[i + 7 * n] = fmod(a * 100.0, b);
}

extern "C" __global__ void singles(const float* x, const float* y, float* out, int n) {
  int i = threadIdx.x;
  float a = x[i], b = y[i];
  out[i] = a / b;
  out[i + n] = sqrtf(fabsf(a));
  out[i + 2 * n] = __fmaf_rz(a, b, 1.0f);
  out[i + 3 * n] = __fmul_rd(a, b) + __fadd_ru(a, b);
  out[i + 4 * n] = rintf(a * 100.0f) + truncf(b * 10.0f);
  out[i + 5 * n] = (float)(int)(a * 1000.0f) + (float)(unsigned)(fabsf(b) * 1000.0f);
  out[i + 6 * n] = copysignf(a, b);
  out[i + 7 * n] = __frcp_rn(b);
}

extern "C" __global__ void elementary(const float* x, float* out, int n) {
  int i = threadIdx.x;
  float a = x[i];
  out[i] = expf(a);
  out[i + n] = logf(fabsf(a) + 0.1f);
  out[i + 2 * n] = sinf(a);
  out[i + 3 * n] = cosf(a);
  out[i + 4 * n] = tanhf(a);
  out[i + 5 * n] = powf(fabsf(a), 1.7f);
  out[i + 6 * n] = erff(a);
  out[i + 7 * n] = rsqrtf(fabsf(a) + 0.5f);
  out[i + 8 * n] = exp2f(a) + log2f(fabsf(a) + 1.0f);
}

extern "C" __global__ void approximate(const float* x, float* out, int n) {
  int i = threadIdx.x;
  float a = x[i];
  out[i] = __expf(a);
  out[i + n] = __logf(fabsf(a) + 0.1f);
  out[i + 2 * n] = __sinf(a);
  out[i + 3 * n] = __fdividef(1.0f, a);
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(a));
  out[i + 4 * n] = y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(fabsf(a)));
  out[i + 5 * n] = y;
}

extern "C" __global__ void elementary_f64(const double* x, double* out, int n) {
  int i = threadIdx.x;
  double a = x[i];
  out[i] = exp(a);
  out[i + n] = log(fabs(a) + 0.1);
  out[i + 2 * n] = sin(a);
  out[i + 3 * n] = pow(fabs(a), 1.3);
}
