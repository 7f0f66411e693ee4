/* Filters a stream block after block, as an audio callback would: stdin to stdout, 32-bit floats. Two channels that take turns
   have a state each, and one workspace. */
#include <stdio.h>
#include <string.h>

#include "gru.h"

enum { BLOCK = 64 };

static gru_state left, right;
static _Alignas(GRU_WORKSPACE_ALIGN) unsigned char workspace[GRU_WORKSPACE_BYTES];

/* clang holds a function to what an audio callback may do: -Wfunction-effects and -fsanitize=realtime look at it. */
#ifndef __has_attribute
#define __has_attribute(name) 0
#endif
#if __has_attribute(nonblocking)
#define NONBLOCKING __attribute__((nonblocking))
#else
#define NONBLOCKING
#endif

/* One block of one channel. */
static int process(gru_state *channel, const float *in, float *out) NONBLOCKING;

static int process(gru_state *channel, const float *in, float *out) NONBLOCKING {
  const gru_process_args args = {.x = in};
  const gru_process_results results = {.y = out};
  return gru_process(&args, &results, channel, workspace, NULL);
}

int main(void) {
  float in[BLOCK], out[BLOCK], other[BLOCK];
  gru_init(&left);
  gru_init(&right);
  while (fread(in, sizeof in, 1, stdin) == 1) {
    if (process(&left, in, out) || process(&right, in, other)) return 1;
    if (memcmp(out, other, sizeof out)) return 2; /* the same samples through the same state */
    if (fwrite(out, sizeof out, 1, stdout) != 1) return 3;
  }
  return 0;
}
