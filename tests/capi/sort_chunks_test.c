/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of rows in another order. */
#include <string.h>

#include "check.h"
#include "struct_size.h"

void TestSortChunks(void) {
  static const int64_t row_shape[] = {6, 1};
  static const int64_t chunk_shape[] = {4};
  static const int32_t split_sizes[] = {2, 0, 3, 1};
  static const int32_t order[] = {2, 0, 3, 1};
  static const float values[] = {1, 2, 3, 4, 5, 6};
  static const float sorted[] = {3, 4, 5, 1, 2, 6};
  static const float back[] = {4, 5, 1, 2, 3, 6};
  float out_rows[6];
  float out_probs[6];
  moeperm_tensor rows = moeperm_tensor_contiguous(values, MOEPERM_FLOAT32, 2, row_shape);
  moeperm_tensor probs = moeperm_tensor_contiguous(values, MOEPERM_FLOAT32, 1, row_shape);
  moeperm_tensor to_rows = moeperm_tensor_contiguous(out_rows, MOEPERM_FLOAT32, 2, row_shape);
  moeperm_tensor to_probs = moeperm_tensor_contiguous(out_probs, MOEPERM_FLOAT32, 1, row_shape);
  moeperm_tensor split = moeperm_tensor_contiguous(split_sizes, MOEPERM_INT32, 1, chunk_shape);
  moeperm_tensor by = moeperm_tensor_contiguous(order, MOEPERM_INT32, 1, chunk_shape);
  {
    NEWER(moeperm_sort_chunks_args) newer = {MOEPERM_SORT_CHUNKS_ARGS_INIT, {0}};
    newer.known.rows = &rows;
    newer.known.probs = &probs;
    newer.known.split_sizes = &split;
    newer.known.order = &by;
    newer.known.sorted_rows = &to_rows;
    newer.known.sorted_probs = &to_probs;
    CHECK_CONVENTION(moeperm_sort_chunks(&newer.known, NULL));
    CHECK_FLOATS(out_rows, sorted);
    CHECK_FLOATS(out_probs, sorted);
    newer.known.struct_size = sizeof(newer.known);
    newer.known.order = NULL;
    CHECK_FAILS(moeperm_sort_chunks(&newer.known, NULL), MOEPERM_INVALID_ARGUMENT,
                "order is missing");
  }
  {
    NEWER(moeperm_sort_chunks_grad_args) newer = {MOEPERM_SORT_CHUNKS_GRAD_ARGS_INIT, {0}};
    newer.known.sorted_rows_grad = &rows;
    newer.known.sorted_probs_grad = &probs;
    newer.known.split_sizes = &split;
    newer.known.order = &by;
    newer.known.rows_grad = &to_rows;
    newer.known.probs_grad = &to_probs;
    CHECK_CONVENTION(moeperm_sort_chunks_grad(&newer.known, NULL));
    CHECK_FLOATS(out_rows, back);
    CHECK_FLOATS(out_probs, back);
  }
}
