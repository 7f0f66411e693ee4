/* The functions that compiled models take from a C library, for programs that have none. Not for hosted systems. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  for (size_t i = 0; i < n; ++i) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  if ((char *)to < (const char *)from) return memcpy(to, from, n);
  for (size_t i = n; i-- > 0;) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
  return to;
}

void *memset(void *to, int byte, size_t n) {
  for (size_t i = 0; i < n; ++i) ((unsigned char *)to)[i] = (unsigned char)byte;
  return to;
}

#ifdef __arm__
/* Arm's names for them: RTABI, "Memory copying, clearing, and setting". */
void __aeabi_memcpy(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy4(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy8(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memmove(void *to, const void *from, size_t n) { memmove(to, from, n); }
void __aeabi_memmove4(void *to, const void *from, size_t n) { memmove(to, from, n); }
void __aeabi_memmove8(void *to, const void *from, size_t n) { memmove(to, from, n); }
void __aeabi_memset(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memset4(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memset8(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memclr(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr4(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr8(void *to, size_t n) { memset(to, 0, n); }
#endif
