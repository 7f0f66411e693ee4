/* A small pool of threads for compiled models: C or C++ by GCC or Clang, POSIX threads, this one file. Optional: any executor will do.
 *
 *   tfaot_pool *pool = tfaot_pool_new(4);              // NULL when memory or threads are lacking
 *   tfaot_executor threads = tfaot_pool_executor(pool);
 *   model_run(&args, &results, workspace, &threads);
 *   tfaot_pool_free(pool);
 *
 * Include it after a model's header. A pool serves one call at a time: give each caller its own.
 */
#ifndef TFAOT_POOL_H
#define TFAOT_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

/* Looks before a thread sleeps, some 50 us: the next kernel mostly begins before that, and to be woken takes ten. */
#define TFAOT_POOL_LOOKS 4000

typedef struct tfaot_pool {
  pthread_mutex_t lock; /* of round and stop, for those that sleep */
  pthread_cond_t begin; /* work was given */
  pthread_t *threads;
  int32_t count; /* threads besides the caller's */
  int stop;
  void (*task)(void *closure, int64_t begin, int64_t end);
  void *closure;
  int64_t total, piece; /* of the work, and what is taken of it at once */
  char apart[64];       /* what changes often lies on lines of its own */
  uint64_t round;       /* pieces of work given so far */
  char apart_too[64];
  int64_t next; /* the first index that nobody has taken */
  int32_t busy; /* threads that have not seen the end of the work */
} tfaot_pool;

static inline void tfaot_pool_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

/* Takes pieces until none is left. */
static inline void tfaot_pool_work(tfaot_pool *pool) {
  for (;;) {
    int64_t first = __atomic_fetch_add(&pool->next, pool->piece, __ATOMIC_RELAXED);
    int64_t last = first + pool->piece;
    if (first >= pool->total) return;
    pool->task(pool->closure, first, last < pool->total ? last : pool->total);
  }
}

static inline void *tfaot_pool_thread(void *self) {
  tfaot_pool *pool = (tfaot_pool *)self;
  uint64_t seen = 0;
  for (;;) {
    int looks, stop;
    for (looks = 0; looks < TFAOT_POOL_LOOKS && __atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen; looks++)
      tfaot_pool_pause();
    if (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen) {
      pthread_mutex_lock(&pool->lock);
      while (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen) pthread_cond_wait(&pool->begin, &pool->lock);
      pthread_mutex_unlock(&pool->lock);
    }
    seen++;
    stop = pool->stop; /* nothing gives work before this thread has done its part of the last */
    if (stop) return NULL;
    tfaot_pool_work(pool);
    __atomic_fetch_sub(&pool->busy, 1, __ATOMIC_RELEASE);
  }
}

/* Begins a round; the lock is for those that have looked and are about to sleep. */
static inline void tfaot_pool_announce(tfaot_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  __atomic_fetch_add(&pool->round, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&pool->lock);
  pthread_cond_broadcast(&pool->begin);
}

static inline void tfaot_pool_parallel_for(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end),
                                           void *closure) {
  tfaot_pool *pool = (tfaot_pool *)self;
  int looks = 0;
  if (pool->count == 0 || n < 2) {
    if (n > 0) task(closure, 0, n);
    return;
  }
  pool->task = task;
  pool->closure = closure;
  pool->total = n;
  pool->piece = n / (4 * ((int64_t)pool->count + 1));
  if (pool->piece < 1) pool->piece = 1;
  __atomic_store_n(&pool->next, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->busy, pool->count, __ATOMIC_RELAXED);
  tfaot_pool_announce(pool);
  tfaot_pool_work(pool);
  while (__atomic_load_n(&pool->busy, __ATOMIC_ACQUIRE) > 0) {
    if (looks++ < TFAOT_POOL_LOOKS) tfaot_pool_pause();
    else sched_yield();
  }
}

/* Ends the threads; NULL is ignored. */
static inline void tfaot_pool_free(tfaot_pool *pool) {
  int32_t i;
  if (!pool) return;
  pool->stop = 1;
  tfaot_pool_announce(pool);
  for (i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->begin);
  pthread_mutex_destroy(&pool->lock);
  free(pool->threads);
  free(pool);
}

/* A pool of num_threads threads, the caller's among them. */
static inline tfaot_pool *tfaot_pool_new(int32_t num_threads) {
  tfaot_pool *pool = (tfaot_pool *)calloc(1, sizeof *pool);
  int32_t wanted = num_threads > 1 ? num_threads - 1 : 0;
  if (!pool) return NULL;
  pool->threads = (pthread_t *)calloc((size_t)wanted + 1, sizeof *pool->threads);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->begin, NULL);
  while (pool->threads && pool->count < wanted) {
    if (pthread_create(&pool->threads[pool->count], NULL, tfaot_pool_thread, pool) != 0) break;
    pool->count++;
  }
  if (pool->count == wanted && pool->threads) return pool;
  tfaot_pool_free(pool);
  return NULL;
}

/* What to hand to a model; it points at the pool. */
static inline tfaot_executor tfaot_pool_executor(tfaot_pool *pool) {
  tfaot_executor executor;
  executor.self = pool;
  executor.num_threads = pool->count + 1;
  executor.parallel_for = tfaot_pool_parallel_for;
  return executor;
}

#endif /* TFAOT_POOL_H */
