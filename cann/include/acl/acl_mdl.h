// SPDX-License-Identifier: Apache-2.0
// Offline models are not offered: programs that include it find nothing.
#ifndef MOEPERM_ACL_MDL_H_
#define MOEPERM_ACL_MDL_H_

#include "acl_base.h"

#endif
