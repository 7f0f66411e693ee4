/* Runs the self-test of model m, with the weights in the file of the first argument where it takes some; exits with its code. */
#include HEADER
#include <stdio.h>
#include <stdlib.h>

static unsigned char memory[M_SELFTEST_BYTES + 64];

static void *aligned(unsigned char *from) { return from + (64 - (uintptr_t)from % 64) % 64; }

int main(int count, char **words) {
  if (m_selftest_bytes() != M_SELFTEST_BYTES) return 100;
#ifdef M_WEIGHTS_BYTES
  static unsigned char room[M_WEIGHTS_BYTES + 64];
  unsigned char *weights = aligned(room);
  FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
  if (file == NULL || fread(weights, 1, M_WEIGHTS_BYTES, file) != M_WEIGHTS_BYTES) return 101;
  fclose(file);
  return m_selftest(weights, aligned(memory));
#else
  (void)words;
  return count > 1 ? 102 : m_selftest(aligned(memory));
#endif
}
