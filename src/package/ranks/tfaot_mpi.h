/* Processes of MPI as the ranks of a model: C99, any MPI from version 2.2 on, this one file.
 *
 *   MPI_Init(&argc, &argv);
 *   tfaot_mpi all;
 *   tfaot_communicator mine;
 *   if (tfaot_mpi_open(&all, MPI_COMM_WORLD, 60, &mine)) ...      // who waits for 60 seconds gives up
 *   int code = model_run(&args, &results, workspace, NULL, &mine);
 *   if (code) MPI_Abort(MPI_COMM_WORLD, code);                    // ends the others too, wherever they are
 *   tfaot_mpi_close(&all);
 *   MPI_Finalize();
 *
 * Include it after a model's header. Ranks send each other blocks, and in front of them at which place of the model they are, as
 * messages of a communicator of their own; there is no other traffic. After a failure arrays of the call may still be in use: end with
 * MPI_Abort. Calls come from the thread that initialised MPI, or from any where it was asked for MPI_THREAD_MULTIPLE.
 */
#ifndef TFAOT_MPI_H
#define TFAOT_MPI_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* MPI counts in int: longer blocks are several messages. */
#define TFAOT_MPI_LONGEST ((size_t)1 << 30)

enum { TFAOT_MPI_PLACE = 1, TFAOT_MPI_BLOCK = 2, TFAOT_MPI_FAILED = 3 }; /* tags */

typedef struct tfaot_mpi {
  MPI_Comm comm;
  int32_t rank, size;
  double seconds;
  int failed;
} tfaot_mpi;

/* Where a rank is in the model. */
typedef struct tfaot_mpi_place {
  uint64_t bytes;
  uint32_t number, kind;
} tfaot_mpi_place;

static inline void tfaot_mpi_fail(void *self) {
  tfaot_mpi *all = (tfaot_mpi *)self;
  if (all->failed) return;
  all->failed = 1;
  for (int32_t i = 0; i < all->size; i++) {
    MPI_Request request;
    if (i == all->rank) continue;
    if (MPI_Isend(NULL, 0, MPI_BYTE, i, TFAOT_MPI_FAILED, all->comm, &request) == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

/* Waits until all is there; what fails, or lasts too long, has failed. */
static inline void tfaot_mpi_wait(tfaot_mpi *all, int count, MPI_Request *requests) {
  double start = MPI_Wtime();
  for (;;) {
    int done = 0, told = 0;
    if (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
    if (done) return;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TFAOT_MPI_FAILED, all->comm, &told, MPI_STATUS_IGNORE) != MPI_SUCCESS || told) break;
    if (MPI_Wtime() - start > all->seconds) break;
  }
  tfaot_mpi_fail(all);
}

/* Sends blocks to the ranks `give` and receives those of the ranks `take`: block i is at from + i * step, to + i * bytes. */
static inline int tfaot_mpi_move(tfaot_mpi *all, const tfaot_exchange *exchange, uint32_t kind, const int32_t *give, uint32_t given,
    const int32_t *take, uint32_t taken, const char *from, size_t step, char *to) {
  if (all->failed) return 1;
  size_t bytes = exchange->bytes, messages = 1 + (bytes + TFAOT_MPI_LONGEST - 1) / TFAOT_MPI_LONGEST;
  tfaot_mpi_place own = {bytes, exchange->number, kind};
  tfaot_mpi_place *places = (tfaot_mpi_place *)malloc((taken + 1) * sizeof *places);
  MPI_Request *requests = (MPI_Request *)malloc((given + taken + 1) * messages * sizeof *requests);
  int count = 0, receives = 0, well = places && requests;
  if (well) places[taken] = own;
  for (uint32_t i = 0; well && i < taken; i++) {
    places[i] = own;
    if (take[i] == all->rank) continue;
    well = MPI_Irecv(&places[i], (int)sizeof *places, MPI_BYTE, take[i], TFAOT_MPI_PLACE, all->comm, &requests[count]) == MPI_SUCCESS;
    count += well;
    for (size_t at = 0; well && at < bytes; at += TFAOT_MPI_LONGEST) {
      int part = (int)(bytes - at < TFAOT_MPI_LONGEST ? bytes - at : TFAOT_MPI_LONGEST);
      well = MPI_Irecv(to + i * bytes + at, part, MPI_BYTE, take[i], TFAOT_MPI_BLOCK, all->comm, &requests[count]) == MPI_SUCCESS;
      count += well;
    }
  }
  receives = count;
  for (uint32_t i = 0; well && i < given; i++) {
    const char *block = from + i * step;
    if (give[i] == all->rank) {
      for (uint32_t j = 0; j < taken; j++)
        if (take[j] == all->rank) memcpy(to + j * bytes, block, bytes);
      continue;
    }
    well = MPI_Isend(&places[taken], (int)sizeof own, MPI_BYTE, give[i], TFAOT_MPI_PLACE, all->comm, &requests[count]) == MPI_SUCCESS;
    count += well;
    for (size_t at = 0; well && at < bytes; at += TFAOT_MPI_LONGEST) {
      int part = (int)(bytes - at < TFAOT_MPI_LONGEST ? bytes - at : TFAOT_MPI_LONGEST);
      well = MPI_Isend(block + at, part, MPI_BYTE, give[i], TFAOT_MPI_BLOCK, all->comm, &requests[count]) == MPI_SUCCESS;
      count += well;
    }
  }
  if (well) tfaot_mpi_wait(all, count, requests);
  for (uint32_t i = 0; well && !all->failed && i < taken; i++) well = !memcmp(&places[i], &own, sizeof own);
  if (!well) tfaot_mpi_fail(all);
  if (!all->failed) {
    free(places);
    free(requests);
    return 0;
  }
  /* Nothing more may arrive; what is being sent can't be taken back, so its place is not freed. */
  for (int i = 0; i < receives; i++) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&requests[i]);
    MPI_Request_free(&requests[i]);
  }
  return 1;
}

static inline int tfaot_mpi_all_gather(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_mpi_move((tfaot_mpi *)self, x, 0, x->ranks, x->count, x->ranks, x->count, (const char *)from, 0, (char *)to);
}

static inline int tfaot_mpi_all_to_all(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_mpi_move((tfaot_mpi *)self, x, 1, x->ranks, x->count, x->ranks, x->count, (const char *)from, x->bytes, (char *)to);
}

static inline int tfaot_mpi_broadcast(void *self, const tfaot_exchange *x, const void *from, void *to) {
  tfaot_mpi *all = (tfaot_mpi *)self;
  uint32_t given = all->rank == x->ranks[0] ? x->count : 0;
  return tfaot_mpi_move(all, x, 2, x->ranks, given, x->ranks, 1, (const char *)from, 0, (char *)to);
}

static inline int tfaot_mpi_permute(void *self, const tfaot_exchange *x, const void *from, void *to) {
  return tfaot_mpi_move((tfaot_mpi *)self, x, 3, x->ranks, x->ranks[0] >= 0, x->ranks + 1, x->ranks[1] >= 0, (const char *)from, 0,
      (char *)to);
}

/* All ranks of `comm` call it; 0, or MPI's code. */
static inline int tfaot_mpi_open(tfaot_mpi *all, MPI_Comm comm, double seconds, tfaot_communicator *mine) {
  int code = MPI_Comm_dup(comm, &all->comm), rank = 0, size = 0;
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_set_errhandler(all->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(all->comm, &rank);
  MPI_Comm_size(all->comm, &size);
  all->rank = rank;
  all->size = size;
  all->seconds = seconds;
  all->failed = 0;
  tfaot_communicator made = {all, rank, size, tfaot_mpi_all_gather, tfaot_mpi_all_to_all, tfaot_mpi_broadcast, tfaot_mpi_permute,
      tfaot_mpi_fail};
  *mine = made;
  return 0;
}

static inline void tfaot_mpi_close(tfaot_mpi *all) {
  MPI_Comm_free(&all->comm);
}

#endif /* TFAOT_MPI_H */
