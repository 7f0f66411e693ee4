/* Twenty steps, each rank with its rows of the batch: mpirun -n 4 ./mpi */
#include "shared.h"

#include "tfaot_mpi.h"

#include "data.h"

enum { ROWS = BATCH / SHARED_RANKS };

static weights w[2];
static float x[ROWS * INPUTS], y[ROWS * OUTPUTS];
static _Alignas(SHARED_WORKSPACE_ALIGN) unsigned char workspace[SHARED_WORKSPACE_BYTES];

int main(int argc, char **argv) {
  tfaot_mpi all;
  tfaot_communicator mine;
  MPI_Init(&argc, &argv);
  if (tfaot_mpi_open(&all, MPI_COMM_WORLD, 30, &mine)) MPI_Abort(MPI_COMM_WORLD, 1);
  start(&w[0]);
  for (int step = 0; step < STEPS; step++) {
    const weights *from = &w[step % 2];
    weights *to = &w[(step + 1) % 2];
    rows(step, mine.rank * ROWS, ROWS, x, y);
    const shared_args args = {x, y, from->w1, from->b1, from->w2, from->b2};
    const shared_results results = {&to->loss, to->w1, to->b1, to->w2, to->b2};
    int code = shared_run(&args, &results, workspace, NULL, &mine);
    if (code) {
      fprintf(stderr, "rank %d: code %d\n", (int)mine.rank, code);
      MPI_Abort(MPI_COMM_WORLD, code);
    }
  }
  if (mine.rank == 0) print(&w[STEPS % 2]);
  tfaot_mpi_close(&all);
  MPI_Finalize();
  return 0;
}
