/* Calls the model on an image of equal pixels and prints the probabilities of the first of a batch, on a Cortex-M without a system:
   text goes to the debugger, or the emulator, by Arm's semihosting. */
#include <stdint.h>

#include "net.h"

static float image[2 * 16 * 16 * 3], probabilities[2 * 10];
static _Alignas(NET_WORKSPACE_ALIGN) unsigned char workspace[NET_WORKSPACE_BYTES];

/* Arm's "Semihosting for AArch32 and AArch64". */
enum { SYS_WRITE0 = 4, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void host(int operation, const void *words) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = words;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void leave(int code) {
  const uintptr_t words[] = {APPLICATION_EXIT, (uintptr_t)code};
  for (;;) host(SYS_EXIT_EXTENDED, words);
}

/* 0.12345 and a space. */
static void print(float probability) {
  char text[] = "0.00000 ";
  uint32_t number = (uint32_t)(probability * 100000 + 0.5f);
  text[0] = (char)('0' + number / 100000);
  for (int at = 6; at > 1; at--, number /= 10) text[at] = (char)('0' + number % 10);
  host(SYS_WRITE0, text);
}

void reset(void) {
  /* the floating-point unit is off after a reset (Armv7-M, "CPACR") */
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;
  __asm__ volatile("dsb\n isb");
  for (unsigned i = 0; i < sizeof image / sizeof *image; i++) image[i] = 0.5f;
  const net_args args = {.image = image};
  const net_results results = {.Identity = probabilities};
  const int code = net_run(&args, &results, workspace, NULL);
  for (int i = 0; i < 10 && !code; i++) print(probabilities[i]);
  host(SYS_WRITE0, "\n");
  leave(code);
}

/* A fault ends the emulator. */
static void fault(void) { leave(100); }

extern char stack_end[];
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {
    (uintptr_t)stack_end, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault};
