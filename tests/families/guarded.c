/* Calls one of many models twice: every array ending at a page that may not be touched, then beginning behind one. The second
 * call's results must have the same bits. PROGRAM NUMBER IN OUT: IN has the arguments, OUT gets the results, one behind the other. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { const char *name, *field; int32_t dtype, rank; const int64_t *dims; size_t bytes; } tensor;
typedef struct {
  const char *name;
  uint32_t args, results, size_count, changes_state;
  const tensor *arg, *result;
  const void *sizes;
  const int32_t *axes;
  size_t workspace, align;
  int64_t flops;
  int (*run)(const void *, const void *, int64_t *, void *, const void *, void *, const void *, const void *);
} function;
typedef struct {
  uint32_t abi, functions, variables, ranks;
  const char *name, *source, *target;
  const function *function;
} info;

#define MODEL(name) const info *name##_info(void);
#include "models.inc"
#undef MODEL
#define MODEL(name) name##_info,
static const info *(*const models[])(void) = {
#include "models.inc"
};

enum { END, BEGIN, MOST = 512 };
typedef struct { char *pages, *at; size_t pages_bytes, bytes; const char *kind; unsigned number; } array;
static array arrays[MOST];
static unsigned count;
static int edge;

static void fault(int signal, siginfo_t *about, void *context) {
  (void)signal, (void)context;
  char *address = about->si_addr, text[256];
  for (unsigned i = 0; i < count; i++) {
    array *a = &arrays[i];
    if (address < a->pages || address >= a->pages + a->pages_bytes) continue;
    int n = snprintf(text, sizeof text, "touched byte %td of %s %u, which has %zu (%s)\n", address - a->at, a->kind, a->number,
                     a->bytes, edge == END ? "End" : "Begin");
    if (write(2, text, (size_t)n) < 0) _exit(8);
    _exit(9);
  }
  static const char other[] = "a fault outside of all arrays\n";
  if (write(2, other, sizeof other - 1) < 0) _exit(8);
  _exit(10);
}

static array *make(size_t bytes, size_t align, const char *kind, unsigned number) {
  if (count == MOST) exit(2);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), held = (bytes + align - 1) / align * align;
  size_t inner = (held + (held == 0) + page - 1) / page * page;
  char *pages = mmap(0, inner + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) exit(2);
  memset(pages + page, 0xff, inner);
  mprotect(pages, page, PROT_NONE);
  mprotect(pages + page + inner, page, PROT_NONE);
  arrays[count] = (array){pages, pages + page + (edge == END ? inner - held : 0), inner + 2 * page, bytes, kind, number};
  return &arrays[count++];
}

/* Whether what alignment and whole pages leave over is as `make` left it. */
static int whole(const array *a) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (char *p = a->pages + page; p < a->pages + a->pages_bytes - page; p++)
    if ((p < a->at || p >= a->at + a->bytes) && *p != (char)0xff) return 0;
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, 0);
  sigaction(SIGBUS, &action, 0);
  const function *model = models[atoi(argv[1])]()->function;
  char *first[MOST];
  for (edge = END; edge <= BEGIN; edge++) {
    count = 0;
    FILE *in = fopen(argv[2], "rb");
    if (!in) return 2;
    char *args[MOST], *results[MOST];
    for (unsigned i = 0; i < model->args; i++) {
      array *a = make(model->arg[i].bytes, 1, "argument", i);
      if (fread(a->at, 1, a->bytes, in) != a->bytes) return 2;
      size_t page = (size_t)sysconf(_SC_PAGESIZE);
      mprotect(a->pages + page, a->pages_bytes - 2 * page, PROT_READ);
      args[i] = a->at;
    }
    fclose(in);
    for (unsigned i = 0; i < model->results; i++) results[i] = make(model->result[i].bytes, 1, "result", i)->at;
    array *workspace = make(model->workspace, model->align, "workspace", 0);
    int code = model->run(args, results, 0, 0, 0, workspace->at, 0, 0);
    if (code) return fprintf(stderr, "the compiled code returned %d\n", code), 1;
    for (unsigned i = model->args; i < count; i++)
      if (!whole(&arrays[i])) return fprintf(stderr, "bytes beside %s %u were written\n", arrays[i].kind, arrays[i].number), 1;
    for (unsigned i = 0; i < model->results; i++) {
      if (edge == END) first[i] = results[i];
      else if (memcmp(first[i], results[i], model->result[i].bytes))
        return fprintf(stderr, "result %u has other bits where arrays begin elsewhere\n", i), 1;
    }
  }
  FILE *out = fopen(argv[3], "wb");
  if (!out) return 2;
  for (unsigned i = 0; i < model->results; i++) fwrite(first[i], 1, model->result[i].bytes, out);
  return fclose(out) != 0;
}
