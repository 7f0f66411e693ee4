/* The product of two numbers, whole. */
static tf_wide tf_product(uint64_t x, uint64_t y) {
  const uint64_t x0 = x & UINT32_C(0xffffffff), x1 = x >> 32, y0 = y & UINT32_C(0xffffffff), y1 = y >> 32;
  const uint64_t p00 = x0 * y0, p01 = x0 * y1, p10 = x1 * y0, p11 = x1 * y1;
  const uint64_t s = (p00 >> 32) + (p01 & UINT32_C(0xffffffff)) + p10;
  tf_wide out;
  out.high = p11 + (p01 >> 32) + (s >> 32);
  out.low = (s << 32) | (p00 & UINT32_C(0xffffffff));
  return out;
}
static uint64_t tf_funnel(uint64_t high, uint64_t low, uint64_t by) {
  return by == 0 ? high : (high << by) | (low >> (64 - by));
}
/* An angle in full turns, times 2^128, by the 192 bits of 2/pi that matter (Payne and Hanek). */
static tf_wide tf_turns(double x) {
  const uint64_t b = tf_bits_double(x), at = ((b >> 52) & 2047) - 1013, bit = at & 63;
  const uint64_t m = (b & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x0010000000000000);
  const uint64_t *p = (const uint64_t *)tfaot_two_over_pi + (at >> 6);
  const tf_wide low = tf_product(m, tf_funnel(p[2], p[3], bit));
  tf_wide all = tf_product(m, tf_funnel(p[1], p[2], bit));
  const uint64_t sum = all.low + low.high;
  all.high += m * tf_funnel(p[0], p[1], bit) + (sum < low.high ? 1u : 0u);
  all.low = sum;
  if (b >> 63 != 0) {
    all.low = ~all.low + 1;
    all.high = ~all.high + (all.low == 0 ? 1u : 0u);
  }
  return all;
}
/* The whole number of quarter turns in an angle, modulo 4. */
static double tfaot_quadrant(double x) {
  const tf_wide t = tf_turns(x);
  return (double)((t.high + (UINT64_C(1) << 61)) >> 62);
}
/* The remainder of the angle after whole quarter turns, at most an eighth turn. */
static double tfaot_rest(double x) {
  const tf_wide t = tf_turns(x);
  uint64_t high = (t.high << 2) | (t.low >> 62), low = t.low << 2, by;
  const int negative = high >> 63 != 0;
  double rest;
  if (negative) {
    low = ~low + 1;
    high = ~high + (low == 0 ? 1u : 0u);
  }
  by = high != 0 ? tf_zeros(high) : (64 + tf_zeros(low)) & 127;
  high = by > 63 ? tf_funnel(low, 0, by & 63) : tf_funnel(high, low, by);
  rest = (double)high * tf_double((959 - by) << 52) * tf_double(UINT64_C(0x3ff921fb54442d18));
  return negative ? -rest : rest;
}
