#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What the code relies on beyond C99: floats are IEEE 754's, each operation is rounded to its type, integers are two's
 * complement, shifts of negative numbers keep the sign, and the least byte of a number comes first. */
#if defined(__FAST_MATH__)
#error "this code is not for -ffast-math: it needs NaN, infinities and the order of sums"
#endif
#if FLT_RADIX != 2 || FLT_MANT_DIG != 24 || DBL_MANT_DIG != 53
#error "this code needs floats of IEEE 754"
#endif
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "this code needs numbers whose least byte comes first"
#endif
#endif
typedef char tf_needs_twos_complement[((int32_t)-1 >> 1) == -1 && (int8_t)-1 == (int8_t)~0 ? 1 : -1];
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)
#error "this code needs operations that are rounded to the type of their operands (-mfpmath=sse on x86)"
#endif
/* Products and sums are fused where `fma` is written, and nowhere else. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/* Vectors: a type of the compiler where it has one (GCC 12, Clang), else arrays and loops. TFAOT_PLAIN_C turns the former off. */
#if !defined(TFAOT_PLAIN_C) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12))
#define TF_TYPE(V, E, n)                                            \
  typedef E V __attribute__((vector_size((n) * sizeof(E))));        \
  typedef E V##_in_memory __attribute__((vector_size((n) * sizeof(E)), aligned(1), may_alias))
#define TF_LANE(a, i) (a)[i]
#define TF_V(V, ...) (V){__VA_ARGS__}
#define TF_LOAD(V, r, p) r = *(const V##_in_memory *)(const void *)(p)
#define TF_STORE(V, p, a) *(V##_in_memory *)(void *)(p) = (a)
#define TF_BINARY(V, U, E, S, n, r, a, op, b) r = (V)((U)(a) op (U)(b))
#define TF_COMPARE(V, U, E, S, n, r, a, op, b) r = (V)((U)(a) op (U)(b))
#define TF_SELECT(V, U, n, r, m, a, b) r = (V)(((U)(a) & (U)(m)) | ((U)(b) & ~(U)(m)))
#define TF_CONVERT(V, U, E, S, n, r, a) r = __builtin_convertvector((U)(a), V)
#define TF_CAST(V, r, a) r = (V)(a)
#define TF_SHUFFLE(m, n, r, a, b, ...) r = __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TF_TYPE(V, E, n) \
  typedef struct V {     \
    E e[n];              \
  } V
#define TF_LANE(a, i) (a).e[i]
#define TF_V(V, ...) (V){{__VA_ARGS__}}
#define TF_EACH(n) for (int tf_i = 0; tf_i < (n); tf_i++)
#define TF_LOAD(V, r, p) memcpy(&r, p, sizeof(V))
#define TF_STORE(V, p, a) memcpy(p, &a, sizeof(V))
#define TF_BINARY(V, U, E, S, n, r, a, op, b) TF_EACH(n) r.e[tf_i] = (E)((S)a.e[tf_i] op (S)b.e[tf_i])
#define TF_COMPARE(V, U, E, S, n, r, a, op, b) TF_EACH(n) r.e[tf_i] = (E)((S)a.e[tf_i] op (S)b.e[tf_i] ? -1 : 0)
#define TF_SELECT(V, U, n, r, m, a, b) TF_EACH(n) r.e[tf_i] = m.e[tf_i] ? a.e[tf_i] : b.e[tf_i]
#define TF_CONVERT(V, U, E, S, n, r, a) TF_EACH(n) r.e[tf_i] = (E)(S)a.e[tf_i]
#define TF_CAST(V, r, a) memcpy(&r, &a, sizeof(V))
#define TF_SHUFFLE(m, n, r, a, b, ...)                                        \
  do {                                                                        \
    static const unsigned short tf_of[n] = {__VA_ARGS__};                     \
    TF_EACH(n) r.e[tf_i] = tf_of[tf_i] < (m) ? a.e[tf_of[tf_i] % (m)] : b.e[tf_of[tf_i] % (m)]; \
  } while (0)
#endif

/*== tf_load_8 */
static inline uint8_t tf_load_8(const unsigned char *p) { return *p; }
/*== tf_load_16 */
static inline uint16_t tf_load_16(const unsigned char *p) {
  uint16_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_32 */
static inline uint32_t tf_load_32(const unsigned char *p) {
  uint32_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_64 */
static inline uint64_t tf_load_64(const unsigned char *p) {
  uint64_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_size */
static inline size_t tf_load_size(const unsigned char *p) {
  size_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_float */
static inline float tf_load_float(const unsigned char *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_double */
static inline double tf_load_double(const unsigned char *p) {
  double x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_pointer */
static inline unsigned char *tf_load_pointer(const unsigned char *p) {
  void *x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_load_function */
static inline tf_function tf_load_function(const unsigned char *p) {
  tf_function x;
  memcpy(&x, p, sizeof x);
  return x;
}
/*== tf_store_8 */
static inline void tf_store_8(unsigned char *p, uint8_t x) { *p = x; }
/*== tf_store_16 */
static inline void tf_store_16(unsigned char *p, uint16_t x) { memcpy(p, &x, sizeof x); }
/*== tf_store_32 */
static inline void tf_store_32(unsigned char *p, uint32_t x) { memcpy(p, &x, sizeof x); }
/*== tf_store_64 */
static inline void tf_store_64(unsigned char *p, uint64_t x) { memcpy(p, &x, sizeof x); }
/*== tf_store_size */
static inline void tf_store_size(unsigned char *p, size_t x) { memcpy(p, &x, sizeof x); }
/*== tf_store_float */
static inline void tf_store_float(unsigned char *p, float x) { memcpy(p, &x, sizeof x); }
/*== tf_store_double */
static inline void tf_store_double(unsigned char *p, double x) { memcpy(p, &x, sizeof x); }
/*== tf_store_pointer */
static inline void tf_store_pointer(unsigned char *p, void *x) { memcpy(p, &x, sizeof x); }
/*== tf_bits_float */
static inline uint32_t tf_bits_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
/*== tf_bits_double */
static inline uint64_t tf_bits_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
/*== tf_fma_float */
/* x * y + z, rounded once: by an instruction, or by doubles, in which the product is exact and the sum is rounded to odd. */
static inline float tf_fma_float(float x, float y, float z) {
#if defined(FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen)
  return fmaf(x, y, z);
#else
  double product = (double)x * (double)y, sum = product + (double)z;
  double of_z = sum - product, of_product = sum - of_z;
  double lost = (product - of_product) + ((double)z - of_z);
  if (lost < 0.0 || lost > 0.0) {
    uint64_t bits, from;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&from, &lost, sizeof from);
    if ((bits & 1u) == 0) bits += ((bits ^ from) >> 63) != 0 ? ~UINT64_C(0) : UINT64_C(1);
    memcpy(&sum, &bits, sizeof sum);
  }
  return (float)sum;
#endif
}
/*== tf_float */
static inline float tf_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
/*== tf_double */
static inline double tf_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
/*== tf_neg_float */
static inline float tf_neg_float(float x) { return -x; }
/*== tf_neg_double */
static inline double tf_neg_double(double x) { return -x; }
/*== tf_abs_float */
static inline float tf_abs_float(float x) {
  return tf_float(tf_bits_float(x) & UINT32_C(0x7fffffff));
}
/*== tf_abs_double */
static inline double tf_abs_double(double x) {
  return tf_double(tf_bits_double(x) & UINT64_C(0x7fffffffffffffff));
}
/*== tf_sign_float */
static inline float tf_sign_float(float x, float sign) {
  return tf_float((tf_bits_float(x) & UINT32_C(0x7fffffff)) | (tf_bits_float(sign) & UINT32_C(0x80000000)));
}
/*== tf_sign_double */
static inline double tf_sign_double(double x, double sign) {
  return tf_double((tf_bits_double(x) & UINT64_C(0x7fffffffffffffff)) |
                   (tf_bits_double(sign) & UINT64_C(0x8000000000000000)));
}
/*== tf_ones */
static inline unsigned tf_ones(uint64_t x) {
  x = x - ((x >> 1) & UINT64_C(0x5555555555555555));
  x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
  x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (unsigned)((x * UINT64_C(0x0101010101010101)) >> 56);
}
/*== tf_zeros */
/* The number of zeros before the first one of 64 bits. */
static inline unsigned tf_zeros(uint64_t x) {
  unsigned n = 0, step;
  if (x == 0) return 64;
  for (step = 32; step > 0; step /= 2) {
    if (x >> (64 - step) == 0) {
      n += step;
      x <<= step;
    }
  }
  return n;
}
/*== tf_to_signed */
/* A whole number of so many bits, cut towards zero and held within its range; 0 for NaN. */
static inline uint64_t tf_to_signed(double x, unsigned bits) {
  const double end = tf_double((uint64_t)(1022 + bits) << 52);
  if (x != x) return 0;
  if (x >= end) return (UINT64_C(1) << (bits - 1)) - 1;
  if (x < -end) return ~UINT64_C(0) << (bits - 1);
  return (uint64_t)(int64_t)x;
}
/*== tf_to_unsigned */
static inline uint64_t tf_to_unsigned(double x, unsigned bits) {
  const double end = tf_double((uint64_t)(1023 + bits) << 52);
  if (!(x > 0)) return 0;
  if (x >= end) return ~UINT64_C(0) >> (64 - bits);
  return (uint64_t)x;
}
