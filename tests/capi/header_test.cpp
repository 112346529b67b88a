// SPDX-License-Identifier: Apache-2.0
// The C header as C++11, where its types and initialisers must mean the same.
#include "moeperm/moeperm.h"

extern const moeperm_context_options kOptions;
extern const moeperm_row_map_options kMapOptions;
extern const moeperm_permute_with_routing_map_args kArgs;
extern const moeperm_permute_with_routing_map_specs kSpecs;
extern const moeperm_permute_with_routing_map_grad_args kGradArgs;
extern const moeperm_permute_with_routing_map_grad_specs kGradSpecs;
extern const moeperm_permute_by_row_map_args kByMapArgs;
extern const moeperm_permute_by_row_map_grad_args kByMapGradArgs;

const moeperm_context_options kOptions = MOEPERM_CONTEXT_OPTIONS_INIT;
const moeperm_row_map_options kMapOptions = MOEPERM_ROW_MAP_OPTIONS_INIT;
const moeperm_permute_with_routing_map_args kArgs = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
const moeperm_permute_with_routing_map_specs kSpecs = MOEPERM_PERMUTE_WITH_ROUTING_MAP_SPECS_INIT;
const moeperm_permute_with_routing_map_grad_args kGradArgs =
    MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT;
const moeperm_permute_with_routing_map_grad_specs kGradSpecs =
    MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_SPECS_INIT;
const moeperm_permute_by_row_map_args kByMapArgs = MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT;
const moeperm_permute_by_row_map_grad_args kByMapGradArgs =
    MOEPERM_PERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT;
