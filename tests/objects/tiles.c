/* A processor with AMX and AVX-VNNI, of their instructions those that compiled code uses: what this one does not know is done
   here, as Intel's manual says. In an object the instructions that ask the processor and the system are written over with some that no processor
   has: cpuid with ud2, xgetbv with ud1, syscall with ud0. TILES=none is a processor without tiles, TILES=plain one without AVX-VNNI too, TILES=refused a system
   that does not give tiles. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

typedef struct tile {
  unsigned rows, bytes;
  uint8_t data[16][64];
} tile;

static _Thread_local tile tiles[8];
static _Thread_local int configured;

static void fail(const char *what) {
  fprintf(stderr, "tiles: %s\n", what);
  _exit(3);
}

static int is(const char *state) {
  const char *told = getenv("TILES");
  return told && strcmp(told, state) == 0;
}

static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

static float factor(const uint8_t *at) {
  uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
  float x;
  memcpy(&x, &bits, 4);
  return flushed(x);
}

static void configure(const uint8_t *at) {
  unsigned i;
  if (at[0] != 1 || at[1] != 0) fail("a palette that is not there");
  for (i = 2; i < 64; ++i) {
    if ((i < 16 || (i >= 32 && i < 48) || i >= 56) && at[i]) fail("a reserved byte");
  }
  memset(tiles, 0, sizeof tiles);
  for (i = 0; i < 8; ++i) {
    tiles[i].bytes = at[16 + 2 * i] | (unsigned)at[17 + 2 * i] << 8;
    tiles[i].rows = at[48 + i];
    if (tiles[i].rows > 16 || tiles[i].bytes > 64 || tiles[i].bytes % 4 || !tiles[i].rows != !tiles[i].bytes) fail("a shape");
  }
  configured = 1;
}

static tile *of(unsigned number) {
  if (!configured || !tiles[number & 7].rows) fail("a tile without a shape");
  return &tiles[number & 7];
}

static void require_fit(const tile *c, const tile *a, const tile *b) {
  if (a->rows != c->rows || b->bytes != c->bytes || a->bytes != 4 * b->rows) fail("shapes that do not fit");
}

/* The sum of a word and the products of four bytes of two others. */
static uint32_t byte_sum(uint32_t sum, const uint8_t *x, int x_signed, const uint8_t *y, int y_signed) {
  unsigned i;
  for (i = 0; i < 4; ++i) sum += (uint32_t)((x_signed ? (int8_t)x[i] : x[i]) * (y_signed ? (int8_t)y[i] : y[i]));
  return sum;
}

static void multiply_bytes(tile *c, const tile *a, int a_signed, const tile *b, int b_signed) {
  unsigned m, k, n;
  require_fit(c, a, b);
  for (m = 0; m < c->rows; ++m) {
    for (k = 0; k < a->bytes / 4; ++k) {
      for (n = 0; n < c->bytes / 4; ++n) {
        uint32_t sum;
        memcpy(&sum, c->data[m] + 4 * n, 4);
        sum = byte_sum(sum, a->data[m] + 4 * k, a_signed, b->data[k] + 4 * n, b_signed);
        memcpy(c->data[m] + 4 * n, &sum, 4);
      }
    }
  }
}

static void multiply(tile *c, const tile *a, const tile *b) {
  unsigned m, k, n, half;
  require_fit(c, a, b);
  for (m = 0; m < c->rows; ++m) {
    float sums[32] = {0};
    for (k = 0; k < a->bytes / 4; ++k) {
      for (n = 0; n < c->bytes / 4; ++n) {
        for (half = 0; half < 2; ++half) {
          float x = factor(a->data[m] + 4 * k + 2 * half), y = factor(b->data[k] + 4 * n + 2 * half);
          sums[2 * n + half] = flushed(fmaf(x, y, sums[2 * n + half]));
        }
      }
    }
    for (n = 0; n < c->bytes / 4; ++n) {
      float z;
      memcpy(&z, c->data[m] + 4 * n, 4);
      z = flushed(flushed(z) + flushed(sums[2 * n] + sums[2 * n + 1]));
      memcpy(c->data[m] + 4 * n, &z, 4);
    }
  }
}

/* The integer registers by their numbers in instructions. */
static greg_t *reg(ucontext_t *u, unsigned number) {
  static const int places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return &u->uc_mcontext.gregs[places[number]];
}

/* The operand in memory at `at`, its modrm byte; its index apart, which is the step of
   tiles. What follows it is `*end`. */
static uint64_t memory(ucontext_t *u, const uint8_t *at, unsigned vex, uint64_t *step, const uint8_t **end) {
  unsigned mode = at[0] >> 6, base = at[0] & 7, extend_base = vex & 0x20 ? 0 : 8, extend_index = vex & 0x40 ? 0 : 8;
  uint64_t sum = 0;
  int32_t offset = 0;
  unsigned has_base = 1;
  *step = 0;
  if (mode == 3) fail("no operand in memory");
  ++at;
  if (base == 5 && mode == 0) {
    memcpy(&offset, at, 4);
    *end = at + 4;
    return (uint64_t)(uintptr_t)*end + (uint64_t)(int64_t)offset;
  }
  if (base == 4) {
    unsigned index = (*at >> 3 & 7) | extend_index;
    if (index != 4) *step = (uint64_t)*reg(u, index) << (*at >> 6);
    base = *at++ & 7;
  }
  if (base == 5 && mode == 0) {
    has_base = 0;
    mode = 2;
  }
  if (has_base) sum = (uint64_t)*reg(u, base | extend_base);
  if (mode == 1) offset = (int8_t)*at++;
  if (mode == 2) {
    memcpy(&offset, at, 4);
    at += 4;
  }
  *end = at;
  return sum + (uint64_t)(int64_t)offset;
}

/* The number of the extended state of 256-bit registers, and where the system saves their upper halves. */
enum { YMM = 2, LEGACY = 512, XMM = 160 };

static uint8_t *saved(ucontext_t *u) { return (uint8_t *)u->uc_mcontext.fpregs; }

static unsigned upper_halves(void) {
  unsigned a, b, c, d;
  __cpuid_count(13, YMM, a, b, c, d);
  return b;
}

static void read_vector(ucontext_t *u, unsigned number, uint8_t *to) {
  uint64_t in_use;
  memcpy(&in_use, saved(u) + LEGACY, 8);
  memcpy(to, saved(u) + XMM + 16 * number, 16);
  memset(to + 16, 0, 16);
  if (in_use >> YMM & 1) memcpy(to + 16, saved(u) + upper_halves() + 16 * number, 16);
}

static void write_vector(ucontext_t *u, unsigned number, const uint8_t *from) {
  uint64_t in_use;
  memcpy(&in_use, saved(u) + LEGACY, 8);
  if (!(in_use >> YMM & 1)) memset(saved(u) + upper_halves(), 0, 256);
  in_use |= 6;
  memcpy(saved(u) + LEGACY, &in_use, 8);
  memcpy(saved(u) + XMM + 16 * number, from, 16);
  memcpy(saved(u) + upper_halves() + 16 * number, from + 16, 16);
}

/* The sum of a word and the products of two numbers of 16 bits of two others. */
static uint32_t short_sum(uint32_t sum, const uint8_t *x, const uint8_t *y) {
  unsigned i;
  for (i = 0; i < 2; ++i) {
    int16_t a, b;
    memcpy(&a, x + 2 * i, 2);
    memcpy(&b, y + 2 * i, 2);
    sum += (uint32_t)((int32_t)a * b);
  }
  return sum;
}

/* vpdpbusd and vpdpwssd behind a VEX prefix of three bytes. */
static const uint8_t *words(ucontext_t *u, const uint8_t *at) {
  unsigned to = (at[4] >> 3 & 7) | (at[1] & 0x80 ? 0 : 8), first = ~(at[2] >> 3) & 15, bytes = at[2] & 4 ? 32 : 16, i;
  uint8_t sums[32], x[32], y[32];
  const uint8_t *end = at + 5;
  if (is("plain")) fail("an instruction of AVX-VNNI");
  if (at[4] >> 6 == 3) {
    read_vector(u, (at[4] & 7) | (at[1] & 0x20 ? 0 : 8), y);
  } else {
    uint64_t step, from = memory(u, at + 4, at[1], &step, &end);
    memcpy(y, (const void *)(from + step), bytes);
  }
  read_vector(u, to, sums);
  read_vector(u, first, x);
  for (i = 0; i < bytes; i += 4) {
    uint32_t sum;
    memcpy(&sum, sums + i, 4);
    sum = at[3] == 0x50 ? byte_sum(sum, x + i, 0, y + i, 1) : short_sum(sum, x + i, y + i);
    memcpy(sums + i, &sum, 4);
  }
  memset(sums + bytes, 0, 32 - bytes);
  write_vector(u, to, sums);
  return end;
}

/* An instruction behind its VEX prefix of three bytes. */
static const uint8_t *vex(ucontext_t *u, const uint8_t *at) {
  unsigned kind = at[2] & 3, third = ~(at[2] >> 3) & 15, opcode = at[3], which = at[4] >> 3 & 7, other = at[4] & 7, i;
  int has_memory = at[4] >> 6 != 3;
  const uint8_t *end = at + 5;
  uint64_t step, from;
  if ((at[1] & 31) != 2 || at[2] & 0x80) return NULL;
  if (kind == 1 && (opcode == 0x50 || opcode == 0x52)) return words(u, at);
  if (at[2] & 4) return NULL;
  if (opcode == 0x49 && kind == 0 && has_memory && which == 0) {
    from = memory(u, at + 4, at[1], &step, &end);
    configure((const uint8_t *)(from + step));
  } else if (opcode == 0x49 && kind == 0 && at[4] == 0xc0) {
    configured = 0;
  } else if (opcode == 0x49 && kind == 3 && !has_memory && other == 0) {
    memset(of(which)->data, 0, sizeof tiles->data);
  } else if (opcode == 0x4b && has_memory && other == 4 && kind != 0) {
    tile *t = of(which);
    from = memory(u, at + 4, at[1], &step, &end);
    if (kind != 2) memset(t->data, 0, sizeof t->data);
    for (i = 0; i < t->rows; ++i, from += step) {
      if (kind == 2) {
        memcpy((void *)from, t->data[i], t->bytes);
      } else {
        memcpy(t->data[i], (const void *)from, t->bytes);
      }
    }
  } else if (opcode == 0x5c && kind == 2 && !has_memory) {
    multiply(of(which), of(other), of(third));
  } else if (opcode == 0x5e && !has_memory) {
    multiply_bytes(of(which), of(other), kind >= 2, of(third), kind == 1 || kind == 3);
  } else {
    return NULL;
  }
  return end;
}

static void ask_processor(ucontext_t *u) {
  unsigned leaf = (unsigned)*reg(u, 0), part = (unsigned)*reg(u, 1), a, b, c, d;
  __cpuid_count(leaf, part, a, b, c, d);
  if (leaf == 7 && part == 0) {
    const unsigned has_tiles = 1u << 22 | 1u << 24 | 1u << 25;
    d = is("none") || is("plain") ? d & ~has_tiles : d | has_tiles;
  }
  if (leaf == 7 && part == 1) a = is("plain") ? a & ~16u : a | 16u;
  *reg(u, 0) = a;
  *reg(u, 3) = b;
  *reg(u, 1) = c;
  *reg(u, 2) = d;
}

static void ask_registers(ucontext_t *u) {
  unsigned a, d;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  *reg(u, 0) = a | 0x60000;
  *reg(u, 2) = d;
}

static void ask_system(ucontext_t *u) {
  if (*reg(u, 0) != 158 || *reg(u, 7) != 0x1023 || *reg(u, 6) != 18) fail("a call of the system");
  *reg(u, 0) = is("refused") ? -1 : 0;
}

static void illegal(int number, siginfo_t *info, void *context) {
  ucontext_t *u = (ucontext_t *)context;
  const uint8_t *at = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP], *end = NULL;
  (void)number;
  (void)info;
  if (at[0] == 0xc4) {
    end = vex(u, at);
  } else if (at[0] == 0x0f && at[1] == 0x0b) {
    ask_processor(u);
    end = at + 2;
  } else if (at[0] == 0x0f && at[1] == 0xb9) {
    ask_registers(u);
    end = at + 3;
  } else if (at[0] == 0x0f && at[1] == 0xff) {
    ask_system(u);
    end = at + 2;
  }
  if (!end) fail("an instruction that it does not know");
  u->uc_mcontext.gregs[REG_RIP] = (greg_t)end;
}

__attribute__((constructor)) static void begin(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = illegal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, NULL);
}

__attribute__((destructor)) static void end(void) {
  if (configured) fail("tiles are left behind a call");
}
