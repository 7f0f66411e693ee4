/* The pool that is shipped: the same bits whatever the number of threads, call after call. */
#include "net.h"

#include "tfaot_pool.h"

#include <stdio.h>
#include <string.h>

static void *zeroed(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (memory) memset(memory, 0, (bytes + 127) / 64 * 64);
  return memory;
}

int main(void) {
  const tfaot_function_info *info = net_info()->functions;
  const void *args[64] = {0};
  void *alone[64] = {0}, *shared[64] = {0}, *workspace = zeroed(info->workspace_bytes);
  uint32_t i;
  for (i = 0; i < info->arg_count; i++) {
    size_t at;
    float *values = zeroed(info->args[i].bytes);
    if (!values) return 2;
    for (at = 0; at < info->args[i].bytes / sizeof(float); at++) values[at] = (float)(at % 31) / 31;
    args[i] = values;
  }
  for (i = 0; i < info->result_count; i++) {
    alone[i] = zeroed(info->results[i].bytes);
    shared[i] = zeroed(info->results[i].bytes);
  }
  if (info->run(args, alone, NULL, NULL, NULL, workspace, NULL, NULL) != 0) return 3;
  for (int threads = 1; threads <= 8; threads++) {
    tfaot_pool *pool = tfaot_pool_new(threads);
    if (!pool) return 4;
    tfaot_executor executor = tfaot_pool_executor(pool);
    for (int call = 0; call < 5; call++) {
      if (info->run(args, shared, NULL, NULL, NULL, workspace, &executor, NULL) != 0) return 5;
      for (i = 0; i < info->result_count; i++) {
        if (memcmp(alone[i], shared[i], info->results[i].bytes) != 0) return 6;
        memset(shared[i], 0, info->results[i].bytes);
      }
    }
    tfaot_pool_free(pool);
  }
  puts("the same bits by 1 to 8 threads");
  return 0;
}
