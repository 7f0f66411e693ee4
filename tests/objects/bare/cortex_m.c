/* Calls one model on files, as driver.c does, on a microcontroller without a system or a C library: files are those of the host,
   by Arm's semihosting. It reads in.NAME and writes out.NAME where the emulator was started. Built with -DHEADER="m.h". */
#include HEADER
#include <stdint.h>

/* Arm's "Semihosting for AArch32 and AArch64": the number of the operation, and the address of its words. */
enum { SYS_OPEN = 1, SYS_CLOSE = 2, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT_EXTENDED = 0x20 };
enum { READ_BINARY = 1, WRITE_BINARY = 5, APPLICATION_EXIT = 0x20026 };

static int host(int operation, const void *words) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = words;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void leave(int code) {
  const uintptr_t words[] = {APPLICATION_EXIT, (uintptr_t)code};
  for (;;) host(SYS_EXIT_EXTENDED, words);
}

/* KIND.NAME with a slash of a TensorFlow name spelt as an underscore: reads or writes all of it. */
static void file(const char *kind, const char *name, int mode, void *at, size_t bytes) {
  static char path[256];
  size_t n = 0;
  for (; *kind; ++kind) path[n++] = *kind;
  for (; *name && n + 1 < sizeof path; ++name) path[n++] = *name == '/' ? '_' : *name;
  path[n] = 0;
  const uintptr_t open[] = {(uintptr_t)path, (uintptr_t)mode, n};
  const int handle = host(SYS_OPEN, open);
  if (handle < 0) leave(2);
  const uintptr_t words[] = {(uintptr_t)handle, (uintptr_t)at, bytes}, close[] = {(uintptr_t)handle};
  /* what is returned is the number of bytes that were not read or written */
  if (host(mode == READ_BINARY ? SYS_READ : SYS_WRITE, words)) leave(3);
  host(SYS_CLOSE, close);
}

/* Memory that nothing gives back. */
static void *memory(size_t bytes) {
  static _Alignas(64) unsigned char heap[1 << 20];
  static size_t used;
  void *at = heap + used;
  used += (bytes + 63) / 64 * 64;
  if (used > sizeof heap) leave(4);
  return at;
}

static int called(void) {
  static void *args[64], *results[64];
  const tfaot_model_info *model = m_info();
  const tfaot_function_info *info = model->functions;
  if (model->abi_version != TFAOT_ABI_VERSION || info->arg_count > 64 || info->result_count > 64) return 5;
  for (uint32_t i = 0; i < info->arg_count; ++i) {
    args[i] = memory(info->args[i].bytes);
    file("in.", info->args[i].name, READ_BINARY, args[i], info->args[i].bytes);
  }
  for (uint32_t i = 0; i < info->result_count; ++i) results[i] = memory(info->results[i].bytes);
  if (!m_supported() || info->run(args, results, NULL, NULL, NULL, memory(info->workspace_bytes), NULL, NULL)) return 6;
  for (uint32_t i = 0; i < info->result_count; ++i)
    file("out.", info->results[i].name, WRITE_BINARY, results[i], info->results[i].bytes);
  return 0;
}

static int tested(void) {
#ifdef M_SELFTEST_BYTES
  return m_selftest(memory(M_SELFTEST_BYTES)) ? 8 : 0;
#else
  return 0;
#endif
}

void reset(void) {
  /* the floating-point unit is off after a reset (Armv7-M, "CPACR") */
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;
  __asm__ volatile("dsb\n isb");
  const int code = called();
  leave(code ? code : tested());
}

/* A fault ends the emulator. */
static void fault(void) { leave(7); }

extern char stack_end[];
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {
    (uintptr_t)stack_end, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault};
