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

/* A number on a line of its own. */
typedef struct tfaot_pool_line {
  uint64_t number;
  char apart[120];
} tfaot_pool_line;

/* What one thread is told. */
typedef struct tfaot_pool_place {
  struct tfaot_pool *pool;
  int32_t number;
} tfaot_pool_place;

typedef struct tfaot_pool {
  pthread_mutex_t lock; /* for those that sleep */
  pthread_cond_t begin; /* work was given */
  pthread_t *threads;
  tfaot_pool_place *places; /* of each thread */
  /* For each thread, the caller's first: the round in the upper half, and how much of its part of that round is taken. Each
   * begins with its own part, which is near since the round before, and then helps the others. */
  tfaot_pool_line *taken;
  tfaot_pool_line *done; /* for each thread but the caller's, the round that it was last done with */
  int32_t count;         /* threads besides the caller's */
  char apart[128];       /* what changes often lies on lines of its own */
  /* The work, with its round; without task threads end. */
  uint64_t round;
  void (*task)(void *closure, int64_t begin, int64_t end);
  void *closure;
  int64_t total, unit; /* indices, and how many of them are counted as one */
  char apart_too[128];
  int32_t asleep; /* threads that sleep or are about to */
} tfaot_pool;

static inline void tfaot_pool_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

/* Where a part begins, in units: what remains goes one each to the first parts. */
static inline uint64_t tfaot_pool_first(uint64_t units, uint64_t parts, uint64_t part) {
  uint64_t more = units % parts;
  return units / parts * part + (part < more ? part : more);
}

/* Takes pieces of all parts, its own first, until none is left. */
static inline void tfaot_pool_work(tfaot_pool *pool, uint64_t round, uint64_t self) {
  const uint64_t parts = (uint64_t)pool->count + 1, tag = round << 32;
  const uint64_t units = ((uint64_t)pool->total + (uint64_t)pool->unit - 1) / (uint64_t)pool->unit;
  uint64_t i;
  for (i = 0; i < parts; i++) {
    const uint64_t part = (self + i) % parts;
    const uint64_t first = tfaot_pool_first(units, parts, part), all = tfaot_pool_first(units, parts, part + 1) - first;
    uint64_t *line = &pool->taken[part].number;
    uint64_t was = __atomic_load_n(line, __ATOMIC_RELAXED);
    if (all == 0 && i == 0) __atomic_store_n(line, tag, __ATOMIC_RELAXED); /* so that rounds may begin again */
    for (;;) {
      /* with another round nobody has been here yet */
      const uint64_t taken = was >> 32 == tag >> 32 ? was & 0xffffffffu : 0, left = all - taken;
      /* most of one's own at first, since kernels go on with what they have of the index before; then half of what is left, so
       * that threads that are done early find something */
      const uint64_t piece = i == 0 && taken == 0 ? left - left / 4 : left - left / 2;
      int64_t begin, end;
      if (taken >= all) break;
      if (!__atomic_compare_exchange_n(line, &was, tag | (taken + piece), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
      begin = (int64_t)(first + taken) * pool->unit;
      end = first + taken + piece == units ? pool->total : (int64_t)(first + taken + piece) * pool->unit;
      pool->task(pool->closure, begin, end);
      was = __atomic_load_n(line, __ATOMIC_RELAXED);
    }
  }
}

static inline void *tfaot_pool_thread(void *place) {
  tfaot_pool *pool = ((tfaot_pool_place *)place)->pool;
  const int32_t self = ((tfaot_pool_place *)place)->number;
  uint64_t seen = 0;
  for (;;) {
    int looks;
    for (looks = 0; looks < TFAOT_POOL_LOOKS && __atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen; looks++)
      tfaot_pool_pause();
    if (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen) {
      pthread_mutex_lock(&pool->lock);
      __atomic_fetch_add(&pool->asleep, 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(&pool->round, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&pool->begin, &pool->lock);
      __atomic_fetch_sub(&pool->asleep, 1, __ATOMIC_SEQ_CST);
      pthread_mutex_unlock(&pool->lock);
    }
    seen++; /* nothing gives work before this thread has done its part of the last */
    if (!pool->task) return NULL;
    tfaot_pool_work(pool, seen, (uint64_t)self);
    __atomic_store_n(&pool->done[self - 1].number, seen, __ATOMIC_RELEASE);
  }
}

/* Begins a round. A thread counts itself among those asleep before it looks for the last time, so that one sees the other. */
static inline uint64_t tfaot_pool_announce(tfaot_pool *pool) {
  const uint64_t round = __atomic_load_n(&pool->round, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&pool->round, round, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->asleep, __ATOMIC_SEQ_CST) > 0) {
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->begin);
    pthread_mutex_unlock(&pool->lock);
  }
  return round;
}

static inline void tfaot_pool_parallel_for(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end),
                                           void *closure) {
  tfaot_pool *pool = (tfaot_pool *)self;
  uint64_t round;
  int32_t i;
  if (pool->count == 0 || n < 2) {
    if (n > 0) task(closure, 0, n);
    return;
  }
  pool->task = task;
  pool->closure = closure;
  pool->total = n;
  pool->unit = (n >> 31) + 1;
  round = tfaot_pool_announce(pool);
  tfaot_pool_work(pool, round, 0);
  for (i = 0; i < pool->count; i++) {
    int looks = 0;
    while (__atomic_load_n(&pool->done[i].number, __ATOMIC_ACQUIRE) != round) {
      if (looks++ < TFAOT_POOL_LOOKS) tfaot_pool_pause();
      else sched_yield();
    }
  }
}

/* Ends the threads; NULL is ignored. */
static inline void tfaot_pool_free(tfaot_pool *pool) {
  int32_t i;
  if (!pool) return;
  pool->task = NULL;
  tfaot_pool_announce(pool);
  for (i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->begin);
  pthread_mutex_destroy(&pool->lock);
  free(pool->threads);
  free(pool->places);
  free(pool->taken);
  free(pool->done);
  free(pool);
}

/* A pool of num_threads threads, the caller's among them. */
static inline tfaot_pool *tfaot_pool_new(int32_t num_threads) {
  tfaot_pool *pool = (tfaot_pool *)calloc(1, sizeof *pool);
  int32_t wanted = num_threads > 1 ? num_threads - 1 : 0, made;
  if (!pool) return NULL;
  pool->threads = (pthread_t *)calloc((size_t)wanted + 1, sizeof *pool->threads);
  pool->places = (tfaot_pool_place *)calloc((size_t)wanted + 1, sizeof *pool->places);
  pool->taken = (tfaot_pool_line *)calloc((size_t)wanted + 1, sizeof *pool->taken);
  pool->done = (tfaot_pool_line *)calloc((size_t)wanted + 1, sizeof *pool->done);
  made = pool->threads && pool->places && pool->taken && pool->done;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->begin, NULL);
  while (made && pool->count < wanted) {
    tfaot_pool_place *place = &pool->places[pool->count];
    place->pool = pool;
    place->number = pool->count + 1;
    if (pthread_create(&pool->threads[pool->count], NULL, tfaot_pool_thread, place) != 0) break;
    pool->count++;
  }
  if (made && pool->count == wanted) return pool;
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
