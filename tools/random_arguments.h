/* Random contents of a model's arguments, the same on every machine: for the C programs beside this file. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Floats from -1 to 1, and integers 0 or 1, which are indices and flags of any graph. The numbers are TensorFlow's DataType. */
static void fill(void *to, int32_t dtype, size_t bytes) {
  static uint64_t state = 88172645463325252u;
  size_t i, size = dtype == 2 || dtype == 9 || dtype == 23 ? 8 : dtype == 3 || dtype == 22 || dtype == 1 || dtype == 8 ? 4
                   : dtype == 5 || dtype == 17 || dtype == 14 || dtype == 19                                           ? 2
                                                                                                                       : 1;
  for (i = 0; i < bytes / size; i++) {
    char *at = (char *)to + i * size;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    if (dtype == 1 || dtype == 8) {
      float v = (float)((double)(state >> 11) / 4503599627370496.0 - 1.0);
      memcpy(at, &v, 4);
    } else if (dtype == 2) {
      double v = (double)(state >> 11) / 4503599627370496.0 - 1.0;
      memcpy(at, &v, 8);
    } else {
      *at = (char)(state >> 63); /* little-endian integers; halves of nearly zero */
    }
  }
}
