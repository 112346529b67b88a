/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the struct_size convention, for any struct and call. */
#ifndef MOEPERM_TESTS_CAPI_STRUCT_SIZE_H_
#define MOEPERM_TESTS_CAPI_STRUCT_SIZE_H_

#include <string.h>

#include "check.h"

/* `type` as a later version of the library may have it. */
#define NEWER(type)         \
  struct {                  \
    type known;             \
    unsigned char tail[40]; \
  }

/* Calls with `newer.known`, whose struct_size is set here, and expects what the convention says.
 * `call` is an expression with `newer`. */
#define CHECK_CONVENTION(call) CHECK_CONVENTION_SINCE(sizeof(newer.known), call)
/* The same of a struct that has grown: it had `first` bytes at first. */
#define CHECK_CONVENTION_SINCE(first, call)                                                 \
  do {                                                                                      \
    const size_t known = sizeof(newer.known);                                               \
    memset(newer.tail, 0, sizeof(newer.tail));                                              \
    newer.known.struct_size = known;                                                        \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.known.struct_size = known + sizeof(newer.tail);                                   \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.tail[sizeof(newer.tail) - 1] = 1;                                                 \
    CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "is not 0");                                \
    newer.known.struct_size = known + sizeof(newer.tail) - 1; /* the byte is outside now */ \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.tail[0] = 255;                                                                    \
    CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "is not 0");                                \
    CHECK_SIZES_REFUSED_BELOW(first, call);                                                 \
  } while (0)

#define CHECK_SIZES_REFUSED(call) CHECK_SIZES_REFUSED_BELOW(sizeof(newer.known), call)
#define CHECK_SIZES_REFUSED_BELOW(first, call)                                \
  do {                                                                        \
    const size_t sizes[] = {0, 1, sizeof(size_t), (first)-1, 4097, SIZE_MAX}; \
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {             \
      newer.known.struct_size = sizes[i];                                     \
      CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "struct_size = ");          \
    }                                                                         \
  } while (0)

#endif /* MOEPERM_TESTS_CAPI_STRUCT_SIZE_H_ */
