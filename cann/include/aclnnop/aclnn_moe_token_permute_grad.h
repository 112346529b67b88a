// SPDX-License-Identifier: Apache-2.0
// The gradient of the tokens of aclnnMoeTokenPermute, in two phases.
#ifndef MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_GRAD_H_
#define MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_GRAD_H_

#include "aclnn/acl_meta.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_API aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(
    const aclTensor* permutedOutputGrad, const aclTensor* sortedIndices, int64_t numTopk,
    bool paddedMode, aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);

ACLNN_API aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
