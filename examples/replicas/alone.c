/* Twenty steps with the whole batch, in one process. */
#include "alone.h"

#include "data.h"

static weights w[2];
static float x[BATCH * INPUTS], y[BATCH * OUTPUTS];
static _Alignas(ALONE_WORKSPACE_ALIGN) unsigned char workspace[ALONE_WORKSPACE_BYTES];

int main(void) {
  start(&w[0]);
  for (int step = 0; step < STEPS; step++) {
    const weights *from = &w[step % 2];
    weights *to = &w[(step + 1) % 2];
    rows(step, 0, BATCH, x, y);
    const alone_args args = {x, y, from->w1, from->b1, from->w2, from->b2};
    const alone_results results = {&to->loss, to->w1, to->b1, to->w2, to->b2};
    int code = alone_run(&args, &results, workspace, NULL);
    if (code) return code;
  }
  print(&w[STEPS % 2]);
  return 0;
}
