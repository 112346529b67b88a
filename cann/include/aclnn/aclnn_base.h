// SPDX-License-Identifier: Apache-2.0
// For programs that use only aclnn, in place of aclInit and aclFinalize.
#ifndef MOEPERM_ACLNN_BASE_H_
#define MOEPERM_ACLNN_BASE_H_

#include "acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
