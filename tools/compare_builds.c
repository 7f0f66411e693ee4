/* Calls two builds of one model in turns: compare_builds OLD.so NEW.so THREADS SECONDS, both built under the name `m`.
 * Prints the least time of a call of each in nanoseconds, and 1 where the results have the same bits, else 0.
 * Built by tools/compare_builds beside a header m.h and tfaot_pool.h that `tfaot compile` wrote. */
#include "m.h"
#include "random_arguments.h"
#include "tfaot_pool.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TURN_NS 2e7 /* a turn is so long, or one call */

typedef struct build {
  const tfaot_function_info *info;
  void *workspace, **results;
  double least;
} build;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void *memory(size_t bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 4096, bytes ? bytes : 1)) exit(3);
  memset(p, 0, bytes);
  return p;
}

static build opened(const char *path) {
  build b;
  uint32_t i;
  const tfaot_model_info *(*info)(void) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) *(void **)&info = dlsym(library, "m_info");
  if (!info) {
    fprintf(stderr, "%s: %s\n", path, dlerror());
    exit(2);
  }
  b.info = info()->functions;
  b.workspace = memory(b.info->workspace_bytes);
  b.results = memory(sizeof(void *) * b.info->result_count);
  for (i = 0; i < b.info->result_count; i++) b.results[i] = memory(b.info->results[i].bytes);
  b.least = 1e300;
  return b;
}

static double call(build *b, void **args, const tfaot_executor *executor) {
  double start = now(), taken;
  int code = b->info->run(args, b->results, NULL, NULL, NULL, b->workspace, executor, NULL);
  taken = now() - start;
  if (code) {
    fprintf(stderr, "a call returned %d\n", code);
    exit(4);
  }
  if (taken < b->least) b->least = taken;
  return taken;
}

int main(int argc, char **argv) {
  build both[2];
  void **args;
  uint32_t i, turn;
  int same = 1, threads;
  double end;
  tfaot_pool *pool = NULL;
  tfaot_executor executor;
  if (argc != 5) return 2;
  both[0] = opened(argv[1]), both[1] = opened(argv[2]);
  threads = atoi(argv[3]);
  if (threads > 1 && !(pool = tfaot_pool_new(threads))) return 3;
  if (pool) executor = tfaot_pool_executor(pool);
  args = memory(sizeof(void *) * both[0].info->arg_count);
  for (i = 0; i < both[0].info->arg_count; i++) {
    args[i] = memory(both[0].info->args[i].bytes);
    fill(args[i], both[0].info->args[i].dtype, both[0].info->args[i].bytes);
  }
  end = now() + 1e9 * atof(argv[4]);
  for (turn = 0; turn < 2 || turn % 2 || now() < end; turn++) {
    build *b = &both[(turn ^ turn >> 1) & 1]; /* old new, new old, ... */
    double stop = now() + TURN_NS;
    call(b, args, pool ? &executor : NULL);
    do call(b, args, pool ? &executor : NULL);
    while (now() < stop);
  }
  for (i = 0; i < both[0].info->result_count; i++)
    same &= !memcmp(both[0].results[i], both[1].results[i], both[0].info->results[i].bytes);
  printf("%.0f %.0f %d\n", both[0].least, both[1].least, same);
  if (pool) tfaot_pool_free(pool);
  return 0;
}
