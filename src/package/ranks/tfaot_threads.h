/* Threads of one process as the ranks of a model: C11, POSIX threads, this one file.
 *
 *   tfaot_threads *all = tfaot_threads_new(4, 30);               // four ranks; who waits for 30 seconds gives up. NULL: no memory
 *   tfaot_communicator mine = tfaot_threads_communicator(all, i); // of thread i, from 0
 *   model_run(&args, &results, workspace, NULL, &mine);           // on each thread, with arguments and a workspace of its own
 *   tfaot_threads_free(all);
 *
 * Include it after a model's header. A rank that is done with all its calls early is one that does not come: the others give up after
 * the time, or at once where it calls `mine.fail(mine.self)`.
 */
#ifndef TFAOT_THREADS_H
#define TFAOT_THREADS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What one rank has for another, until that one took it. */
typedef struct tfaot_threads_box {
  const void *block; /* NULL: nothing */
  size_t bytes;
  uint32_t number, kind;
  int32_t read; /* 1 while the other copies it */
} tfaot_threads_box;

typedef struct tfaot_threads_rank {
  struct tfaot_threads *all;
  int32_t rank;
} tfaot_threads_rank;

typedef struct tfaot_threads {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t size, seconds, failed;
  tfaot_threads_rank *ranks;
  tfaot_threads_box *boxes; /* from * size + to */
} tfaot_threads;

static inline void tfaot_threads_free(tfaot_threads *all) {
  if (!all) return;
  pthread_cond_destroy(&all->changed);
  pthread_mutex_destroy(&all->lock);
  free(all->ranks);
  free(all->boxes);
  free(all);
}

static inline tfaot_threads *tfaot_threads_new(int32_t size, int32_t seconds) {
  if (size < 1) return NULL;
  tfaot_threads *all = (tfaot_threads *)calloc(1, sizeof *all);
  if (!all) return NULL;
  all->size = size;
  all->seconds = seconds;
  all->ranks = (tfaot_threads_rank *)calloc((size_t)size, sizeof *all->ranks);
  all->boxes = (tfaot_threads_box *)calloc((size_t)size * (size_t)size, sizeof *all->boxes);
  pthread_mutex_init(&all->lock, NULL);
  pthread_cond_init(&all->changed, NULL);
  if (!all->ranks || !all->boxes) {
    tfaot_threads_free(all);
    return NULL;
  }
  for (int32_t i = 0; i < size; i++) {
    all->ranks[i].all = all;
    all->ranks[i].rank = i;
  }
  return all;
}

/* Waits for a change, with the lock; afterwards all have failed if the time is over. */
static inline void tfaot_threads_wait(tfaot_threads *all, const struct timespec *until) {
  if (pthread_cond_timedwait(&all->changed, &all->lock, until) && !all->failed) {
    all->failed = 1;
    pthread_cond_broadcast(&all->changed);
  }
}

/* Puts blocks for the ranks `give` and takes those of the ranks `take`: block i is at from + i * step_from, to + i * bytes. */
static inline int tfaot_threads_move(tfaot_threads_rank *me, const tfaot_exchange *exchange, uint32_t kind, const int32_t *give,
    uint32_t given, const int32_t *take, uint32_t taken, const char *from, size_t step, char *to) {
  tfaot_threads *all = me->all;
  size_t bytes = exchange->bytes;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += all->seconds;
  pthread_mutex_lock(&all->lock);
  for (uint32_t i = 0; i < given; i++) {
    tfaot_threads_box *box = &all->boxes[(size_t)me->rank * (size_t)all->size + (size_t)give[i]];
    box->block = from + i * step;
    box->bytes = bytes;
    box->number = exchange->number;
    box->kind = kind;
  }
  pthread_cond_broadcast(&all->changed);
  for (uint32_t i = 0; i < taken; i++) {
    tfaot_threads_box *box = &all->boxes[(size_t)take[i] * (size_t)all->size + (size_t)me->rank];
    while (!box->block && !all->failed) tfaot_threads_wait(all, &until);
    if (all->failed) break;
    if (box->bytes != bytes || box->number != exchange->number || box->kind != kind) {
      all->failed = 1;
      pthread_cond_broadcast(&all->changed);
      break;
    }
    const void *block = box->block;
    box->read = 1; /* the other rank waits until it is not */
    pthread_mutex_unlock(&all->lock);
    memcpy(to + i * bytes, block, bytes);
    pthread_mutex_lock(&all->lock);
    box->read = 0;
    box->block = NULL;
    pthread_cond_broadcast(&all->changed);
  }
  for (uint32_t i = 0; i < given; i++) {
    tfaot_threads_box *box = &all->boxes[(size_t)me->rank * (size_t)all->size + (size_t)give[i]];
    while (box->read || (box->block && !all->failed)) tfaot_threads_wait(all, &until);
  }
  int code = all->failed;
  pthread_mutex_unlock(&all->lock);
  return code;
}

static inline int tfaot_threads_all_gather(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_threads_move((tfaot_threads_rank *)self, x, 0, x->ranks, x->count, x->ranks, x->count, (const char *)from, 0,
      (char *)to);
}

static inline int tfaot_threads_all_to_all(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_threads_move((tfaot_threads_rank *)self, x, 1, x->ranks, x->count, x->ranks, x->count, (const char *)from, x->bytes,
      (char *)to);
}

static inline int tfaot_threads_broadcast(void *self, const tfaot_exchange *x, const void *from, void *to) {
  tfaot_threads_rank *me = (tfaot_threads_rank *)self;
  uint32_t given = me->rank == x->ranks[0] ? x->count : 0;
  return tfaot_threads_move(me, x, 2, x->ranks, given, x->ranks, 1, (const char *)from, 0, (char *)to);
}

static inline int tfaot_threads_permute(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_threads_move((tfaot_threads_rank *)self, x, 3, x->ranks, x->ranks[0] >= 0, x->ranks + 1, x->ranks[1] >= 0,
      (const char *)from, 0, (char *)to);
}

static inline void tfaot_threads_fail(void *self) {
  tfaot_threads *all = ((tfaot_threads_rank *)self)->all;
  pthread_mutex_lock(&all->lock);
  all->failed = 1;
  pthread_cond_broadcast(&all->changed);
  pthread_mutex_unlock(&all->lock);
}

static inline tfaot_communicator tfaot_threads_communicator(tfaot_threads *all, int32_t rank) {
  tfaot_communicator c = {&all->ranks[rank], rank, all->size, tfaot_threads_all_gather, tfaot_threads_all_to_all,
      tfaot_threads_broadcast, tfaot_threads_permute, tfaot_threads_fail};
  return c;
}

#endif /* TFAOT_THREADS_H */
