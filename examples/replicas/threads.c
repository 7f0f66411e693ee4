/* Twenty steps, each thread with its rows of the batch. */
#include "shared.h"

#include "tfaot_threads.h"

#include "data.h"

enum { ROWS = BATCH / SHARED_RANKS };

typedef struct rank {
  pthread_t thread;
  tfaot_communicator mine;
  weights w[2];
  int code;
} rank;

static rank ranks[SHARED_RANKS];

static void *train(void *own) {
  static _Thread_local float x[ROWS * INPUTS], y[ROWS * OUTPUTS];
  static _Thread_local _Alignas(SHARED_WORKSPACE_ALIGN) unsigned char workspace[SHARED_WORKSPACE_BYTES];
  rank *r = own;
  start(&r->w[0]);
  for (int step = 0; step < STEPS && !r->code; step++) {
    const weights *from = &r->w[step % 2];
    weights *to = &r->w[(step + 1) % 2];
    rows(step, r->mine.rank * ROWS, ROWS, x, y);
    const shared_args args = {x, y, from->w1, from->b1, from->w2, from->b2};
    const shared_results results = {&to->loss, to->w1, to->b1, to->w2, to->b2};
    r->code = shared_run(&args, &results, workspace, NULL, &r->mine);
  }
  return NULL;
}

int main(void) {
  tfaot_threads *all = tfaot_threads_new(SHARED_RANKS, 30);
  if (!all) return 1;
  for (int32_t i = 0; i < SHARED_RANKS; i++) {
    ranks[i].mine = tfaot_threads_communicator(all, i);
    if (pthread_create(&ranks[i].thread, NULL, train, &ranks[i])) return 1;
  }
  for (int32_t i = 0; i < SHARED_RANKS; i++) pthread_join(ranks[i].thread, NULL);
  tfaot_threads_free(all);
  for (int32_t i = 0; i < SHARED_RANKS; i++)
    if (ranks[i].code) return ranks[i].code;
  print(&ranks[0].w[STEPS % 2]);
  return 0;
}
