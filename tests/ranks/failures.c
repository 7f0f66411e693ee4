/* Four ranks of which number 2 does what the first argument says in its second call, by threads or by MPI (-DWITH_MPI):
 *   well   nothing else than the others
 *   fail   its own function fails
 *   size   it calls a model whose arrays are larger
 *   stay   it never calls
 *   kill   it ends as if killed (MPI alone)
 * Each rank prints the code of its last call. Who waits for two seconds gives up. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "step.h"
#include "wide.h"
#ifdef WITH_MPI
#include "tfaot_mpi.h"
#else
#include "tfaot_threads.h"
#endif

static const char *what = "well";

int look(const float *x, float *y, const tfaot_call *call) {
  memcpy(y, x, call->args[0].bytes);
  return x[0] < 0;
}

static int calls(tfaot_communicator *mine) {
  float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, r[10];
  char workspace[STEP_WORKSPACE_BYTES + WIDE_WORKSPACE_BYTES + 1];
  int odd = 0, code = 0;
  for (int i = 0; i < 3 && !code; i++) {
    odd = i == 1 && mine->rank == 2;
    x[0] = odd && !strcmp(what, "fail") ? -1.0f : (float)mine->rank;
    if (odd && !strcmp(what, "stay")) return 0;
    if (odd && !strcmp(what, "kill")) raise(SIGKILL);
    if (odd && !strcmp(what, "size")) {
      wide_args args = {x};
      wide_results results = {r};
      code = wide_run(&args, &results, workspace, NULL, mine);
    } else {
      step_args args = {x};
      step_results results = {r};
      code = step_run(&args, &results, workspace, NULL, mine);
    }
  }
  if (!code && (r[0] != 6 || r[5] != 24)) code = 100;
  return code;
}

#ifdef WITH_MPI
int main(int argc, char **argv) {
  tfaot_mpi all;
  tfaot_communicator mine;
  MPI_Init(&argc, &argv);
  if (argc > 1) what = argv[1];
  if (tfaot_mpi_open(&all, MPI_COMM_WORLD, 2, &mine)) return 1;
  int code = calls(&mine);
  printf("rank %d: %d\n", (int)mine.rank, code);
  fflush(stdout);
  if (mine.rank == 2 && !strcmp(what, "stay")) sleep(4);
  if (code) {
    sleep(1); /* until all have said so */
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  tfaot_mpi_close(&all);
  MPI_Finalize();
  return 0;
}
#else
static tfaot_communicator communicators[4];
static int codes[4];

static void *one(void *own) {
  tfaot_communicator *mine = own;
  codes[mine->rank] = calls(mine);
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[4];
  if (argc > 1) what = argv[1];
  tfaot_threads *all = tfaot_threads_new(4, 2);
  for (int i = 0; i < 4; i++) {
    communicators[i] = tfaot_threads_communicator(all, i);
    pthread_create(&threads[i], NULL, one, &communicators[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) printf("rank %d: %d\n", i, codes[i]);
  /* who has another number of ranks, or none, is refused */
  tfaot_communicator three = communicators[0];
  three.size = 3;
  float x[6] = {0}, r[6];
  char workspace[STEP_WORKSPACE_BYTES + 1];
  step_args args = {x};
  step_results results = {r};
  printf("three: %d, none: %d\n", step_run(&args, &results, workspace, NULL, &three), step_run(&args, &results, workspace, NULL, NULL));
  tfaot_threads_free(all);
  return 0;
}
#endif
