// SPDX-License-Identifier: Apache-2.0
// The way back with weights, in two phases.
#ifndef MOEPERM_ACLNNOP_MOE_TOKEN_UNPERMUTE_H_
#define MOEPERM_ACLNNOP_MOE_TOKEN_UNPERMUTE_H_

#include "aclnn/acl_meta.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    bool paddedMode, const aclIntArray* restoreShapeOptional, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor);

ACLNN_API aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
