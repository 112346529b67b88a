// SPDX-License-Identifier: Apache-2.0
// Visibility of operators.
#ifndef MOEPERM_ACLNNOP_ACLNN_UTIL_H_
#define MOEPERM_ACLNNOP_ACLNN_UTIL_H_

#define ACLNN_API __attribute__((visibility("default")))

#endif
