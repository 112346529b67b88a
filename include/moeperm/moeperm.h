/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C ABI: the operators of moeperm for C99 and later, for C++, and for foreign-function
 * interfaces. The C++ headers beside this one state the same contract.
 *
 *   moeperm_tensor x = moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, 2, shape);
 *   moeperm_permute_with_routing_map_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
 *   args.tokens = &x;
 *   ...
 *   if (moeperm_permute_with_routing_map(&args, NULL) != MOEPERM_OK) puts(moeperm_last_error());
 *
 * Every function may be called from any number of threads at once, prints nothing, never aborts
 * and throws nothing. The library keeps no pointer of the caller's after a call.
 *
 * struct_size. Structs that may grow start with it; the _INIT macros set it to the size that the
 * caller was compiled with, and everything else to its default, which is always 0. New fields come
 * at the end. A struct of an older caller is filled up with defaults; one of a newer caller is
 * accepted where every byte this library does not know is 0, and refused otherwise: what a caller
 * asks for is never ignored. Sizes below the first published one and above 4096 are refused.
 *
 * Flags are int32_t: 0 is no, anything else is yes.
 */
#ifndef MOEPERM_MOEPERM_H_
#define MOEPERM_MOEPERM_H_

#include <stddef.h>
#include <stdint.h>

#include "moeperm/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ---------------------------------------------------------------------------- */

/* Of this header. */
#define MOEPERM_VERSION_MAJOR 0
#define MOEPERM_VERSION_MINOR 1
#define MOEPERM_VERSION_PATCH 0

/* Of the library that runs: "0.1.0". */
MOEPERM_EXPORT const char* moeperm_version(void);

/* ---- Results ---------------------------------------------------------------------------- */

/* One of the values below; their meaning never changes. An int32_t, so that its size does not
 * depend on the compiler. */
typedef int32_t moeperm_code;
enum {
  MOEPERM_OK = 0,
  MOEPERM_INVALID_ARGUMENT = 1,   /* a shape, dtype, stride, count or option that cannot be right */
  MOEPERM_INDEX_OUT_OF_RANGE = 2, /* an index value inside a tensor points nowhere */
  MOEPERM_OUT_OF_MEMORY = 3,      /* temporary memory could not be allocated */
  MOEPERM_INTERNAL = 4            /* a defect of this library; please report it */
};

/* "OK", "INVALID_ARGUMENT", ...; "UNKNOWN" for other values. */
MOEPERM_EXPORT const char* moeperm_code_name(moeperm_code code);

/* What was wrong with the last call of the calling thread that did not return MOEPERM_OK, cut to
 * 1023 bytes: it names the argument, the place and the value. "" where there was none. Calls that
 * succeed leave it as it is. The text is valid until the thread's next call that fails, and as long
 * as the thread runs. */
MOEPERM_EXPORT const char* moeperm_last_error(void);

/* ---- Tensors ---------------------------------------------------------------------------- */

/* One of the values below; their meaning never changes. */
typedef int32_t moeperm_dtype;
enum {
  MOEPERM_DTYPE_INVALID = 0,
  MOEPERM_FLOAT32 = 1,
  MOEPERM_FLOAT16 = 2,  /* IEEE binary16 */
  MOEPERM_BFLOAT16 = 3, /* upper half of an IEEE binary32 */
  MOEPERM_INT8 = 4,
  MOEPERM_BOOL = 5, /* one byte, 0 or not 0 */
  MOEPERM_INT32 = 6,
  MOEPERM_INT64 = 7
};

/* Bytes of one element; 0 for MOEPERM_DTYPE_INVALID and other values. */
MOEPERM_EXPORT size_t moeperm_dtype_size(moeperm_dtype dtype);

/* "float32", "bfloat16", ...; "invalid" for other values. */
MOEPERM_EXPORT const char* moeperm_dtype_name(moeperm_dtype dtype);

#define MOEPERM_MAX_RANK 4

/* A view of the caller's memory. This struct never changes.
 * data is the address of element [0, 0, ...], aligned to the element; it may be NULL where the
 * tensor has no elements. Inputs are only read. Strides count elements; they may be negative, and
 * for inputs 0. An optional tensor that is absent is a NULL moeperm_tensor pointer, and nothing
 * else is. */
typedef struct moeperm_tensor {
  void* data;
  moeperm_dtype dtype;
  int32_t rank; /* 0 .. MOEPERM_MAX_RANK */
  int64_t shape[MOEPERM_MAX_RANK];
  int64_t strides[MOEPERM_MAX_RANK];
} moeperm_tensor;

/* A row-major view. shape has rank elements; it is not read where rank is not 0 ..
 * MOEPERM_MAX_RANK, and every operator then refuses the view. */
MOEPERM_EXPORT moeperm_tensor moeperm_tensor_contiguous(const void* data, moeperm_dtype dtype,
                                                        int32_t rank, const int64_t* shape);

/* What an output must look like. dtype is MOEPERM_DTYPE_INVALID where there is no such output.
 * This struct never changes. */
typedef struct moeperm_tensor_spec {
  moeperm_dtype dtype;
  int32_t rank;
  int64_t shape[MOEPERM_MAX_RANK]; /* 0 past rank */
} moeperm_tensor_spec;
#define MOEPERM_TENSOR_SPEC_INIT    \
  {                                 \
    MOEPERM_DTYPE_INVALID, 0, { 0 } \
  }

/* ---- Context: how a call runs ------------------------------------------------------------ */

typedef struct moeperm_context_options {
  size_t struct_size;
  /* Threads of a call, the calling one included. 0: the environment variable MOEPERM_NUM_THREADS,
   * or where that is not set, every processor the process may use. */
  int32_t num_threads;
  /* Instruction set, by a name of moeperm_available_isas, upper or lower case. NULL or "": the
   * environment variable MOEPERM_ISA, or where that is not set, the best one here. */
  const char* isa;
} moeperm_context_options;
#define MOEPERM_CONTEXT_OPTIONS_INIT \
  { sizeof(moeperm_context_options), 0, NULL }

/* Threads and instruction set. May be used by many host threads at once; neither the number of
 * threads nor the instruction set changes a bit of any result. Wherever a context is asked for,
 * NULL is the default one: made on first use from the environment variables, never destroyed. */
typedef struct moeperm_context moeperm_context;

/* options may be NULL. After an error *context is NULL. */
MOEPERM_EXPORT moeperm_code moeperm_context_create(const moeperm_context_options* options,
                                                   moeperm_context** context);
/* Not while a call uses it. NULL: does nothing. */
MOEPERM_EXPORT void moeperm_context_destroy(moeperm_context* context);

/* MOEPERM_OK, or for the default context what is wrong with the environment variables. */
MOEPERM_EXPORT moeperm_code moeperm_context_status(const moeperm_context* context);
/* 0 and "" where the status is not MOEPERM_OK. The text is valid forever. */
MOEPERM_EXPORT int32_t moeperm_context_num_threads(const moeperm_context* context);
MOEPERM_EXPORT const char* moeperm_context_isa(const moeperm_context* context);

/* Instruction sets this build has and this machine runs, best first, then NULL. Valid forever. Only
 * where memory ran out is there none. */
MOEPERM_EXPORT const char* const* moeperm_available_isas(void);

/* ---- MoeTokenPermuteWithRoutingMap and its gradient ---------------------------------------
 *
 * Symbols in shapes: T tokens, H hidden, E experts, K slots a token (top_k), R rows, C capacity.
 * Floating-point tensors ("float") are float32, float16 or bfloat16; the probs may have another of
 * these dtypes than the tokens. A routing map is int8 or bool; a byte that is not 0 is a route. Any
 * tensor may be a strided view; an output may not overlap itself, another output or an input.
 * Every element of every output is written, and none is read. After an error the outputs are
 * unspecified. Errors: MOEPERM_INVALID_ARGUMENT (shapes, dtypes, strides, counts),
 * MOEPERM_INDEX_OUT_OF_RANGE (a value in sorted_indices), MOEPERM_OUT_OF_MEMORY. */

/* Lays the tokens out expert by expert: experts ascending, tokens ascending inside an expert.
 *
 *   permuted_tokens[row] = tokens[token of row], permuted_probs[row] = probs[token][expert of row]
 *
 * Not padded: one row a route, cut or filled up with zero rows to num_out_tokens. Token t's routes,
 * experts ascending, are its slots t*K, t*K+1, ...; sorted_indices[slot] = row, and -1 for a slot
 * without a route or whose row was cut off. A token with more than K routes is an error.
 * Drop-and-pad: C = num_out_tokens / E (floor) rows an expert, R = C * E: its first C routed
 * tokens, then, where it has fewer, its first unrouted tokens (pad rows, copied like the others,
 * with their probs). sorted_indices[row] = token. C may not exceed T.
 *
 * The values are copied: exact for every bit pattern. */
typedef struct moeperm_permute_with_routing_map_args {
  size_t struct_size;
  const moeperm_tensor* tokens;            /* [T, H] float */
  const moeperm_tensor* routing_map;       /* [T, E] int8 or bool */
  const moeperm_tensor* probs;             /* optional: [T, E] float */
  int64_t num_out_tokens;                  /* not padded: R, any number; drop-and-pad: see above */
  int64_t top_k;                           /* K; not padded only */
  int32_t drop_and_pad;                    /* flag */
  const moeperm_tensor* permuted_tokens;   /* output: [R, H], dtype of tokens */
  const moeperm_tensor* permuted_probs;    /* output: [R], dtype of probs; if and only if probs */
  const moeperm_tensor* sorted_indices;    /* output: [T * K] or [R], int32 or int64 */
  const moeperm_tensor* tokens_per_expert; /* optional output: [E] int32 or int64, routes in map */
  const moeperm_tensor* expert_offsets;    /* optional output: [E + 1] int32 or int64, first rows */
} moeperm_permute_with_routing_map_args;
#define MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT                                              \
  {                                                                                             \
    sizeof(moeperm_permute_with_routing_map_args), NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, \
        NULL, NULL                                                                              \
  }

MOEPERM_EXPORT moeperm_code moeperm_permute_with_routing_map(
    const moeperm_permute_with_routing_map_args* args, const moeperm_context* context);

typedef struct moeperm_permute_with_routing_map_specs {
  size_t struct_size; /* the caller's; all below is written by the library */
  moeperm_tensor_spec permuted_tokens;
  moeperm_tensor_spec permuted_probs;    /* where probs are given */
  moeperm_tensor_spec sorted_indices;    /* int32 */
  moeperm_tensor_spec tokens_per_expert; /* int64 */
  moeperm_tensor_spec expert_offsets;    /* int64 */
} moeperm_permute_with_routing_map_specs;
#define MOEPERM_PERMUTE_WITH_ROUTING_MAP_SPECS_INIT                                   \
  {                                                                                   \
    sizeof(moeperm_permute_with_routing_map_specs), MOEPERM_TENSOR_SPEC_INIT,         \
        MOEPERM_TENSOR_SPEC_INIT, MOEPERM_TENSOR_SPEC_INIT, MOEPERM_TENSOR_SPEC_INIT, \
        MOEPERM_TENSOR_SPEC_INIT                                                      \
  }

/* Shapes and dtypes of the outputs, from the inputs and attributes alone (outputs are not looked
 * at, no data is read). Refuses what moeperm_permute_with_routing_map would refuse; *specs is then
 * unchanged. */
MOEPERM_EXPORT moeperm_code
moeperm_infer_permute_with_routing_map(const moeperm_permute_with_routing_map_args* args,
                                       moeperm_permute_with_routing_map_specs* specs);

/* Brings the gradients of the permuted tokens and probs back to token order.
 *
 * Not padded (K = slots / T): tokens_grad[t] = sum over t's slots, ascending, of
 * permuted_tokens_grad[sorted_indices[slot]]; slots holding -1 are skipped. The sum is kept in
 * float32; it starts as the row of slot t*K where that slot is routed, else from +0, and is rounded
 * to the dtype once. probs_grad[t][e] = permuted_probs_grad[rank of route (t, e)], routes counted
 * expert by expert, tokens ascending; +0 where there is no route or the rank is not below R. The
 * map alone decides probs_grad.
 * Drop-and-pad: tokens_grad[t] = sum over the rows with sorted_indices[row] == t, rows ascending,
 * in float32 from +0. probs_grad[sorted_indices[row]][row / C] = permuted_probs_grad[row], where
 * C = R / E (R a multiple of E); the last of two equal pairs wins; +0 elsewhere.
 *
 * Either gradient may be asked for alone: an output that is absent is not computed, and what only
 * it needs may be absent too. */
typedef struct moeperm_permute_with_routing_map_grad_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens_grad; /* [R, H] float; with tokens_grad */
  const moeperm_tensor* permuted_probs_grad;  /* [R] float; with probs_grad */
  const moeperm_tensor* sorted_indices;       /* [T * K] or [R], int32 or int64 */
  const moeperm_tensor* routing_map;          /* [T, E]; with probs_grad, not padded */
  int64_t num_tokens;                         /* T */
  int64_t num_experts;                        /* E; with probs_grad */
  int32_t drop_and_pad;                       /* flag */
  /* Flag, not padded: a slot holding a row number >= R is skipped, like -1. No: it is an error. */
  int32_t skip_rows_out_of_range;
  const moeperm_tensor* tokens_grad; /* optional output: [T, H], dtype of permuted_tokens_grad */
  const moeperm_tensor* probs_grad;  /* optional output: [T, E], dtype of permuted_probs_grad */
} moeperm_permute_with_routing_map_grad_args;
#define MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT                                           \
  {                                                                                               \
    sizeof(moeperm_permute_with_routing_map_grad_args), NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, \
        NULL                                                                                      \
  }

MOEPERM_EXPORT moeperm_code moeperm_permute_with_routing_map_grad(
    const moeperm_permute_with_routing_map_grad_args* args, const moeperm_context* context);

typedef struct moeperm_permute_with_routing_map_grad_specs {
  size_t struct_size;
  moeperm_tensor_spec tokens_grad; /* where permuted_tokens_grad is given */
  moeperm_tensor_spec probs_grad;  /* where permuted_probs_grad is given */
} moeperm_permute_with_routing_map_grad_specs;
#define MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_SPECS_INIT                           \
  {                                                                                \
    sizeof(moeperm_permute_with_routing_map_grad_specs), MOEPERM_TENSOR_SPEC_INIT, \
        MOEPERM_TENSOR_SPEC_INIT                                                   \
  }

/* Shapes and dtypes of the gradients whose permuted ones are given, from the inputs and attributes
 * alone (outputs are not looked at, no data is read). Refuses what
 * moeperm_permute_with_routing_map_grad would refuse of these, but not what only probs_grad needs,
 * for it need not be wanted: routing_map may be NULL, and in drop-and-pad mode R need not be a
 * multiple of E. *specs is unchanged after an error. */
MOEPERM_EXPORT moeperm_code
moeperm_infer_permute_with_routing_map_grad(const moeperm_permute_with_routing_map_grad_args* args,
                                            moeperm_permute_with_routing_map_grad_specs* specs);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---- The other operators ------------------------------------------------------------------ */

#include "moeperm/c/permute.h"
#include "moeperm/c/row_map.h"
#include "moeperm/c/sort_chunks.h"
#include "moeperm/c/unpermute.h"

#endif /* MOEPERM_MOEPERM_H_ */
