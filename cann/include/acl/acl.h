// SPDX-License-Identifier: Apache-2.0
// Everything of acl.
#ifndef MOEPERM_ACL_H_
#define MOEPERM_ACL_H_

#include "acl_mdl.h"
#include "acl_op.h"
#include "acl_rt.h"

#endif
