// What GCC's libraries of Debian 12 take of glibc 2.29 and newer, for systems that have an older one.
//
// The static libraries that a release links were compiled where glibc is 2.36, and their references carry no versions. What glibc
// 2.28 has under the same name is taken from there; what it has not is here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

// Since 2.32: whether the process has but one thread, in which case libstdc++ counts references without atomic operations.
char __libc_single_threaded = 0;

// Since 2.36: random bits for std::random_device.
uint32_t arc4random(void) {
  uint32_t bits;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    if (errno != EINTR) abort();
  return bits;
}

// Since 2.33: LLVM asks how much memory is in use, for statistics that tfaot never prints. Counters of mallinfo are 32 bits wide
// and wrap above that.
struct mallinfo2 mallinfo2(void) {
  struct mallinfo narrow = mallinfo(); // deprecated since mallinfo2
  struct mallinfo2 wide = {0};
  wide.uordblks = (unsigned)narrow.uordblks;
  return wide;
}

// Since 2.35: which loaded object holds an address, and where its table of frames is. GCC's unwinder asks this and nothing else.
struct search {
  uintptr_t address;
  struct dl_find_object *found;
};

static int holds(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  void *frames = NULL;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = (void *)at;
    if (part->p_type != PT_LOAD) continue;
    if (at < begin) begin = at;
    if (at + part->p_memsz > end) end = at + part->p_memsz;
    if (search->address >= at && search->address < at + part->p_memsz) inside = 1;
  }
  if (!inside) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->dlfo_map_start = (void *)begin;
  search->found->dlfo_map_end = (void *)end;
  search->found->dlfo_eh_frame = frames;
  return 1;
}

int _dl_find_object(void *address, struct dl_find_object *result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(holds, &search) && result->dlfo_eh_frame ? 0 : -1;
}
