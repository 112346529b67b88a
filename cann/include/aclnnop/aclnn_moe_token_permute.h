// SPDX-License-Identifier: Apache-2.0
// Moves tokens to the experts of a table, in two phases.
#ifndef MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_H_
#define MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_H_

#include "aclnn/acl_meta.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_API aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

ACLNN_API aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
