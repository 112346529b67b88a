// SPDX-License-Identifier: Apache-2.0
// The older name of acl_base_rt.h.
#ifndef MOEPERM_ACL_BASE_H_
#define MOEPERM_ACL_BASE_H_

#include "acl_base_rt.h"

#endif
