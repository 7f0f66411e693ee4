/* Tests a keyword spotter on the board it runs on, then says which word it hears in the frames of `frames.h`. For a Cortex-M without a
   system: text goes to the debugger, or the emulator, by Arm's semihosting. */
#include <stdint.h>

#include "frames.h"
#include "kws.h"

static const char *const names[] = {"silence", "unknown", "yes",  "no", "up",   "down",
                                    "left",    "right",   "on", "off", "stop", "go"};
static float words[12];
static _Alignas(KWS_WORKSPACE_ALIGN) unsigned char workspace[KWS_SELFTEST_BYTES];

/* Arm's "Semihosting for AArch32 and AArch64". */
enum { SYS_WRITE0 = 4, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void host(int operation, const void *words_of_host) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = words_of_host;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void leave(int code) {
  const uintptr_t exit[] = {APPLICATION_EXIT, (uintptr_t)code};
  for (;;) host(SYS_EXIT_EXTENDED, exit);
}

/* The bits of a float, and a space. */
static void print_bits(const float *x) {
  char text[] = "00000000 ";
  const uint32_t bits = *(const uint32_t *)(const void *)x;
  for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
  host(SYS_WRITE0, text);
}

void reset(void) {
  /* the floating-point unit is off after a reset (Armv7-M, "CPACR") */
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;
  __asm__ volatile("dsb\n isb");
  int code = kws_selftest(workspace);
  host(SYS_WRITE0, code ? "the self-test fails\n" : "the self-test passes\n");
  const kws_args args = {.frames = frames};
  const kws_results results = {.Identity = words};
  if (!code) code = kws_run(&args, &results, workspace, NULL);
  int heard = 0;
  for (int i = 0; i < 12 && !code; i++) {
    print_bits(&words[i]);
    if (words[i] > words[heard]) heard = i;
  }
  host(SYS_WRITE0, "\n");
  host(SYS_WRITE0, names[heard]);
  host(SYS_WRITE0, "\n");
  leave(code);
}

/* A fault ends the emulator. */
static void fault(void) { leave(100); }

extern char stack_end[];
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {
    (uintptr_t)stack_end, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault};
