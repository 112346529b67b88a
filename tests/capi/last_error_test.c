/* SPDX-License-Identifier: Apache-2.0 */
/* The last error belongs to its thread, outlives calls that succeed, and is cut where it is long.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fixtures.h"

enum { kThreads = 4, kRounds = 200 };

static void* FailInOwnWay(void* argument) {
  const int own = *(const int*)argument;
  char want[32];
  Case c;
  CHECK_TEXT(moeperm_last_error(), ""); /* a new thread starts with none */
  snprintf(want, sizeof(want), "num_out_tokens = -%d", own);
  for (int round = 0; round < kRounds; ++round) {
    SetUp(&c, &kF1);
    c.args.num_out_tokens = -own;
    CHECK_FAILS(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_INVALID_ARGUMENT, want);
    c.args.num_out_tokens = 6;
    CHECK_CODE(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_OK);
    CheckForward(&c);
    CHECK(strstr(moeperm_last_error(), want) != NULL); /* as the failed call left it */
  }
  return NULL;
}

void TestLastErrorOfThreads(void) {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i + 1;
    CHECK(pthread_create(&threads[i], NULL, FailInOwnWay, &numbers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK_TEXT(moeperm_last_error(), ""); /* none of them was this thread's */

  char long_name[3000];
  memset(long_name, 'x', sizeof(long_name));
  long_name[sizeof(long_name) - 1] = '\0';
  moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
  options.isa = long_name;
  moeperm_context* context = NULL;
  CHECK_FAILS(moeperm_context_create(&options, &context), MOEPERM_INVALID_ARGUMENT, "isa = xxx");
  CHECK(strlen(moeperm_last_error()) == 1023);
}
