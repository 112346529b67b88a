// SPDX-License-Identifier: Apache-2.0
// Single operators by name are not offered: programs that include it find nothing.
#ifndef MOEPERM_ACL_OP_H_
#define MOEPERM_ACL_OP_H_

#include "acl_base.h"

#endif
