// SPDX-License-Identifier: Apache-2.0
// aclnnMoeTokenPermute for a process that holds some of the rows, in two phases.
#ifndef MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_WITH_EP_H_
#define MOEPERM_ACLNNOP_MOE_TOKEN_PERMUTE_WITH_EP_H_

#include "aclnn/acl_meta.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, const aclTensor* probsOptional,
    const aclIntArray* rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut,
    const aclTensor* permuteProbsOut, uint64_t* workspaceSize, aclOpExecutor** executor);

ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
