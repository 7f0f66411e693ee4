/* Writes text with a decoder: what is given, letter by letter, and then what the model expects next, up to the end of a line. The cache of
   keys and values is in the state, so that each step computes one token alone. */
#include <stdio.h>
#include <string.h>

#include "gpt.h"

enum { LENGTH = 64 };

static const char letters[] = "\nabcdefghijklmnopqrstuvwxyz ";
static gpt_state state;
static _Alignas(GPT_WORKSPACE_ALIGN) unsigned char workspace[GPT_WORKSPACE_BYTES];
static float logits[sizeof letters - 1];

/* Puts a token behind the others; the one that is expected next, or -1. */
static int32_t step(int32_t token) {
  int32_t next;
  const gpt_step_args args = {.token = &token};
  const gpt_step_results results = {.next = &next, .logits = logits};
  return gpt_step(&args, &results, &state, workspace, NULL) ? -1 : next;
}

int main(int argc, char **argv) {
  const char *prompt = argc > 1 ? argv[1] : "the ";
  gpt_init(&state);
  int32_t next = step(0); /* a text begins with the end of a line */
  int length = 1;
  for (const char *at = prompt; *at && length < LENGTH; at++, length++) {
    const char *letter = strchr(letters, *at);
    if (!letter) return fprintf(stderr, "letters are a to z and spaces\n"), 1;
    putchar(*at);
    next = step((int32_t)(letter - letters));
  }
  for (; next > 0 && length < LENGTH; length++) {
    putchar(letters[next]);
    next = step(next);
  }
  putchar('\n');
  return next < 0;
}
