/* The pool that is shipped, where it is used in other ways than by one caller in a quiet process: one way an argument. Ends with
   0 where every index was visited once, and in time. */
#define _GNU_SOURCE
#include "m.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* pthread_create that starts this many threads and then has none. */
static int threads_left = 1 << 30;
static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
  return threads_left-- > 0 ? pthread_create(thread, attributes, run, with) : 11;
}
#define pthread_create create
#include "tfaot_pool.h"
#undef pthread_create

enum { INDICES = 100 };

typedef struct visits {
  tfaot_executor *nested; /* what each task starts in its turn */
  int32_t count[INDICES];
  struct visits *inside;
} visits;

static void visit(void *closure, int64_t begin, int64_t end) {
  visits *all = (visits *)closure;
  for (int64_t i = begin; i < end; i++) {
    __atomic_fetch_add(&all->count[i], 1, __ATOMIC_RELAXED);
    if (all->nested) all->nested->parallel_for(all->nested->self, INDICES, visit, &all->inside[i]);
  }
}

/* Whether one loop visits each index once. */
static int is_whole(const tfaot_executor *executor) {
  visits all = {0};
  executor->parallel_for(executor->self, INDICES, visit, &all);
  for (int i = 0; i < INDICES; i++)
    if (all.count[i] != 1) return 0;
  return 1;
}

static int nested(tfaot_executor *executor) {
  static visits inside[INDICES];
  visits all = {0};
  all.nested = executor, all.inside = inside;
  executor->parallel_for(executor->self, INDICES, visit, &all);
  for (int i = 0; i < INDICES; i++) {
    if (all.count[i] != 1) return 1;
    for (int j = 0; j < INDICES; j++)
      if (inside[i].count[j] != 1) return 2;
  }
  return 0;
}

static void *caller(void *executor) {
  for (int i = 0; i < 3000; i++)
    if (!is_whole((const tfaot_executor *)executor)) return executor;
  return NULL;
}

static int two_callers(tfaot_executor *executor) {
  pthread_t other;
  void *failed;
  if (pthread_create(&other, NULL, caller, executor)) return 1;
  if (caller(executor)) return 2;
  pthread_join(other, &failed);
  return failed ? 3 : 0;
}

static int is_held, is_free;
static void hold(int number) {
  (void)number;
  __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&is_free, __ATOMIC_ACQUIRE)) usleep(100);
}

/* A thread that has lost its processor before it came to a call. */
static int held_thread(tfaot_executor *executor, tfaot_pool *pool) {
  int i, whole = 1;
  signal(SIGUSR1, hold);
  usleep(20000); /* it sleeps */
  if (pthread_kill(pool->threads[0], SIGUSR1)) return 1;
  while (!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE)) usleep(100);
  for (i = 0; i < 100; i++) whole &= is_whole(executor);
  __atomic_store_n(&is_free, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 100; i++) whole &= is_whole(executor);
  return whole ? 0 : 2;
}

static int forked(tfaot_executor *executor, tfaot_pool *pool) {
  for (int i = 0; i < 20; i++) {
    int status = 1;
    pid_t child;
    if (i % 2) usleep(1000);
    if (!is_whole(executor)) return 1;
    child = fork();
    if (child == 0) {
      int whole = 1;
      alarm(20);
      for (int call = 0; call < 10; call++) whole &= is_whole(executor);
      tfaot_pool_free(pool);
      _exit(whole ? 0 : 3);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 2;
  }
  return is_whole(executor) ? 0 : 3;
}

static int no_threads(void) {
  for (int left = 0; left < 3; left++) {
    tfaot_pool *pool;
    tfaot_executor executor;
    threads_left = left;
    pool = tfaot_pool_new(4);
    if (pool) return 1;
    executor = tfaot_pool_executor(pool);
    if (executor.num_threads != 1 || !is_whole(&executor)) return 2;
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  tfaot_pool *pool = tfaot_pool_new(4);
  tfaot_executor executor;
  int failed = 9;
  if (!pool) return 8;
  executor = tfaot_pool_executor(pool);
  alarm(60);
  if (!strcmp(way, "nested")) failed = nested(&executor);
  if (!strcmp(way, "two-callers")) failed = two_callers(&executor);
  if (!strcmp(way, "held-thread")) failed = held_thread(&executor, pool);
  if (!strcmp(way, "fork")) failed = forked(&executor, pool);
  if (!strcmp(way, "no-threads")) failed = no_threads();
  tfaot_pool_free(pool);
  printf("%s: %d\n", way, failed);
  return failed;
}
