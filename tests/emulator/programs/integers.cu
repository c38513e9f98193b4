// Integer arithmetic of every width.
extern "C" __global__ void wide_division(const long long* x, const long long* y, long long* out, int n) {
  int i = threadIdx.x;
  long long a = x[i], b = y[i];
  out[i] = a / b;
  out[i + n] = a % b;
  out[i + 2 * n] = (long long)((unsigned long long)a / (unsigned long long)b);
  out[i + 3 * n] = (long long)((unsigned long long)a % 1000003ULL);
  out[i + 4 * n] = __mul64hi(a, b);
  out[i + 5 * n] = a * b + (a >> 7) - ((unsigned long long)b >> 9);
}

extern "C" __global__ void bits(const unsigned* x, const unsigned* y, unsigned* out, int n) {
  int i = threadIdx.x;
  unsigned a = x[i], b = y[i];
  out[i] = __popc(a) * 100 + __clz(b);
  out[i + n] = __brev(a) ^ __ffs(b);
  out[i + 2 * n] = __byte_perm(a, b, 0x3715);
  out[i + 3 * n] = __funnelshift_l(a, b, a & 31);
  out[i + 4 * n] = __umulhi(a, b) + a * b;
  out[i + 5 * n] = (unsigned)__dp4a((int)a, (int)b, 7);
  out[i + 6 * n] = __usad(a, b, 5) + __vadd2(a, b);
  out[i + 7 * n] = a / (b | 1) + a % 13 + (unsigned)((int)a / 7);
  out[i + 8 * n] = (unsigned)min((int)a, (int)b) ^ max(a, b);
  out[i + 9 * n] = (a >> (b & 31)) + (unsigned)((int)a >> (b & 31)) + (a << (b & 15));
}

extern "C" __global__ void small(const signed char* x, const unsigned short* y, short* out, int n) {
  int i = threadIdx.x;
  signed char a = x[i];
  unsigned short b = y[i];
  out[i] = (short)(a * b);
  out[i + n] = (short)(a / 3 - b % 7);
  out[i + 2 * n] = (short)((unsigned char)a << 3);
  out[i + 3 * n] = (short)(a < 0 ? -a : b >> 2);
}
