/* SPDX-License-Identifier: Apache-2.0 */
/* Names, sizes, views, contexts. */
#include "check.h"

#define TEXT_OF(value) #value
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

void TestBasics(void) {
  static const struct {
    moeperm_dtype dtype;
    const char* name;
    size_t size;
  } kDTypes[] = {
      {MOEPERM_DTYPE_INVALID, "invalid", 0},
      {MOEPERM_FLOAT32, "float32", 4},
      {MOEPERM_FLOAT16, "float16", 2},
      {MOEPERM_BFLOAT16, "bfloat16", 2},
      {MOEPERM_INT8, "int8", 1},
      {MOEPERM_BOOL, "bool", 1},
      {MOEPERM_INT32, "int32", 4},
      {MOEPERM_INT64, "int64", 8},
      {8, "invalid", 0},
      {-1, "invalid", 0},
      {INT32_MAX, "invalid", 0},
  };
  for (size_t i = 0; i < sizeof(kDTypes) / sizeof(*kDTypes); ++i) {
    CHECK_TEXT(moeperm_dtype_name(kDTypes[i].dtype), kDTypes[i].name);
    CHECK(moeperm_dtype_size(kDTypes[i].dtype) == kDTypes[i].size);
  }

  CHECK_TEXT(moeperm_code_name(MOEPERM_OK), "OK");
  CHECK_TEXT(moeperm_code_name(MOEPERM_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  CHECK_TEXT(moeperm_code_name(MOEPERM_INDEX_OUT_OF_RANGE), "INDEX_OUT_OF_RANGE");
  CHECK_TEXT(moeperm_code_name(MOEPERM_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  CHECK_TEXT(moeperm_code_name(MOEPERM_INTERNAL), "INTERNAL");
  CHECK_TEXT(moeperm_code_name(5), "UNKNOWN");
  CHECK_TEXT(moeperm_code_name(-1), "UNKNOWN");
  CHECK_TEXT(moeperm_version(),
             VERSION_OF(MOEPERM_VERSION_MAJOR, MOEPERM_VERSION_MINOR, MOEPERM_VERSION_PATCH));
  CHECK_TEXT(moeperm_last_error(), "");

  /* The layout that programs are compiled with. */
  CHECK(sizeof(moeperm_tensor) == sizeof(void*) + 8 + 64);
  CHECK(sizeof(moeperm_tensor_spec) == 8 + 32);

  float data[24];
  const int64_t shape[] = {2, 3, 4};
  const moeperm_tensor view = moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, 3, shape);
  const int64_t want_shape[] = {2, 3, 4, 0};
  const int64_t want_strides[] = {12, 4, 1, 0};
  CHECK(view.data == data && view.dtype == MOEPERM_FLOAT32 && view.rank == 3);
  CHECK_INT64S(view.shape, want_shape);
  CHECK_INT64S(view.strides, want_strides);

  CHECK(moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, 0, NULL).rank == 0);
  CHECK(moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, 5, NULL).rank == 5);
  CHECK(moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, -1, NULL).rank == -1);
}

void TestContexts(void) {
  const char* const* isas = moeperm_available_isas();
  CHECK(isas[0] != NULL);
  CHECK(isas == moeperm_available_isas());

  /* The default one; ctest sets neither environment variable. */
  CHECK_CODE(moeperm_context_status(NULL), MOEPERM_OK);
  CHECK(moeperm_context_num_threads(NULL) >= 1);
  CHECK_TEXT(moeperm_context_isa(NULL), isas[0]);

  moeperm_context* context = NULL;
  CHECK_CODE(moeperm_context_create(NULL, &context), MOEPERM_OK);
  CHECK(moeperm_context_num_threads(context) == moeperm_context_num_threads(NULL));
  moeperm_context_destroy(context);

  for (; *isas != NULL; ++isas) {
    moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
    options.num_threads = 3;
    options.isa = *isas;
    CHECK_CODE(moeperm_context_create(&options, &context), MOEPERM_OK);
    CHECK_CODE(moeperm_context_status(context), MOEPERM_OK);
    CHECK(moeperm_context_num_threads(context) == 3);
    CHECK_TEXT(moeperm_context_isa(context), *isas);
    moeperm_context_destroy(context);
  }
  moeperm_context_destroy(NULL);

  /* After an error there is no context. */
  moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
  options.num_threads = -1;
  context = (moeperm_context*)&options;
  CHECK_FAILS(moeperm_context_create(&options, &context), MOEPERM_INVALID_ARGUMENT,
              "num_threads = -1");
  CHECK(context == NULL);
  options.num_threads = 1;
  options.isa = "Z80";
  CHECK_FAILS(moeperm_context_create(&options, &context), MOEPERM_INVALID_ARGUMENT, "isa = Z80");
  CHECK_FAILS(moeperm_context_create(&options, NULL), MOEPERM_INVALID_ARGUMENT, "context");
  options.isa = "";
  CHECK_CODE(moeperm_context_create(&options, &context), MOEPERM_OK);
  CHECK(moeperm_context_num_threads(context) == 1);
  moeperm_context_destroy(context);
}
