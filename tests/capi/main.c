/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the group of tests that the argument names, or without one all of them. */
#include <stdio.h>
#include <string.h>

#include "check.h"

int failed_checks = 0;

static void Report(const char* text, const char* file, int line) {
  ++failed_checks;
  fprintf(stderr, "%s:%d: %s: ", file, line, text);
}

static int IsNull(const void* got, const char* text, const char* file, int line) {
  if (got != NULL) return 0;
  Report(text, file, line);
  fprintf(stderr, "is a null pointer\n");
  return 1;
}

void CheckTrue(int holds, const char* text, const char* file, int line) {
  if (holds) return;
  Report(text, file, line);
  fprintf(stderr, "does not hold\n");
}

void CheckCode(moeperm_code got, moeperm_code want, const char* part, const char* text,
               const char* file, int line) {
  if (got != want) {
    Report(text, file, line);
    fprintf(stderr, "%s instead of %s, last error: %s\n", moeperm_code_name(got),
            moeperm_code_name(want), moeperm_last_error());
  } else if (got != MOEPERM_OK && strstr(moeperm_last_error(), part) == NULL) {
    Report(text, file, line);
    fprintf(stderr, "last error '%s' without '%s'\n", moeperm_last_error(), part);
  }
}

void CheckText(const char* got, const char* want, const char* text, const char* file, int line) {
  if (strcmp(got, want) == 0) return;
  Report(text, file, line);
  fprintf(stderr, "'%s' instead of '%s'\n", got, want);
}

void CheckFloats(const float* got, const float* want, size_t count, const char* text,
                 const char* file, int line) {
  if (IsNull(got, text, file, line)) return;
  for (size_t i = 0; i < count; ++i) {
    if (got[i] == want[i]) continue;
    Report(text, file, line);
    fprintf(stderr, "[%zu] is %g instead of %g\n", i, (double)got[i], (double)want[i]);
  }
}

void CheckInt32s(const int32_t* got, const int32_t* want, size_t count, const char* text,
                 const char* file, int line) {
  if (IsNull(got, text, file, line)) return;
  for (size_t i = 0; i < count; ++i) {
    if (got[i] == want[i]) continue;
    Report(text, file, line);
    fprintf(stderr, "[%zu] is %ld instead of %ld\n", i, (long)got[i], (long)want[i]);
  }
}

void CheckInt64s(const int64_t* got, const int64_t* want, size_t count, const char* text,
                 const char* file, int line) {
  if (IsNull(got, text, file, line)) return;
  for (size_t i = 0; i < count; ++i) {
    if (got[i] == want[i]) continue;
    Report(text, file, line);
    fprintf(stderr, "[%zu] is %lld instead of %lld\n", i, (long long)got[i], (long long)want[i]);
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} kGroups[] = {
    {"basics", TestBasics},
    {"contexts", TestContexts},
    {"errors", TestErrors},
    {"family", TestFamily},
    {"fixtures", TestFixtures},
    {"infer", TestInfer},
    {"last_error", TestLastErrorOfThreads},
    {"row_map_options", TestRowMapOptions},
    {"row_maps", TestRowMaps},
    {"sort_chunks", TestSortChunks},
    {"struct_sizes", TestStructSizes},
};

int main(int argc, char** argv) {
  size_t groups = 0;
  for (size_t i = 0; i < sizeof(kGroups) / sizeof(*kGroups); ++i) {
    if (argc > 1 && strcmp(argv[1], kGroups[i].name) != 0) continue;
    kGroups[i].run();
    ++groups;
  }
  if (groups == 0) {
    fprintf(stderr, "no group of tests has this name\n");
    return 2;
  }
  return failed_checks == 0 ? 0 : 1;
}
