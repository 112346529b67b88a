/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for tests in C. A failed one tells where, counts, and goes on. */
#ifndef MOEPERM_TESTS_CAPI_CHECK_H_
#define MOEPERM_TESTS_CAPI_CHECK_H_

#include "moeperm/moeperm.h"

extern int failed_checks;

#define CHECK(condition) CheckTrue((condition) != 0, #condition, __FILE__, __LINE__)
void CheckTrue(int holds, const char* text, const char* file, int line);

/* The call returned `want`; a failed one left the text `part` in its message. */
#define CHECK_CODE(call, want) CheckCode((call), (want), "", #call, __FILE__, __LINE__)
#define CHECK_FAILS(call, want, part) CheckCode((call), (want), (part), #call, __FILE__, __LINE__)
void CheckCode(moeperm_code got, moeperm_code want, const char* part, const char* text,
               const char* file, int line);

#define CHECK_TEXT(got, want) CheckText((got), (want), #got, __FILE__, __LINE__)
void CheckText(const char* got, const char* want, const char* text, const char* file, int line);

/* `count` values from `got` on equal those of the array `want`. */
#define CHECK_FLOATS(got, want) \
  CheckFloats((got), (want), sizeof(want) / sizeof(*(want)), #got, __FILE__, __LINE__)
void CheckFloats(const float* got, const float* want, size_t count, const char* text,
                 const char* file, int line);
#define CHECK_INT32S(got, want) \
  CheckInt32s((got), (want), sizeof(want) / sizeof(*(want)), #got, __FILE__, __LINE__)
void CheckInt32s(const int32_t* got, const int32_t* want, size_t count, const char* text,
                 const char* file, int line);
#define CHECK_INT64S(got, want) \
  CheckInt64s((got), (want), sizeof(want) / sizeof(*(want)), #got, __FILE__, __LINE__)
void CheckInt64s(const int64_t* got, const int64_t* want, size_t count, const char* text,
                 const char* file, int line);

/* The groups of tests; main.c has the table of their names. */
void TestBasics(void);
void TestContexts(void);
void TestErrors(void);
void TestFamily(void);
void TestFixtures(void);
void TestInfer(void);
void TestLastErrorOfThreads(void);
void TestRowMapOptions(void);
void TestRowMaps(void);
void TestSortChunks(void);
void TestStructSizes(void);

#endif /* MOEPERM_TESTS_CAPI_CHECK_H_ */
