// SPDX-License-Identifier: Apache-2.0
// The gradients of aclnnMoeTokenUnpermuteWithRoutingMap, in two phases.
#ifndef MOEPERM_ACLNNOP_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H_
#define MOEPERM_ACLNNOP_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H_

#include "aclnn/acl_meta.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex,
    const aclTensor* permuteTokenId, const aclTensor* routingMapOptional,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool dropAndPad,
    const aclIntArray* restoreShapeOptional, const aclTensor* permutedTokensGradOut,
    const aclTensor* probsGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);

ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace,
                                                               uint64_t workspaceSize,
                                                               aclOpExecutor* executor,
                                                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
