// SPDX-License-Identifier: Apache-2.0
// Allocators of the program are not offered: their types only.
#ifndef MOEPERM_ACL_RT_ALLOCATOR_H_
#define MOEPERM_ACL_RT_ALLOCATOR_H_

#include "acl_base.h"

typedef void* aclrtAllocator;
typedef void* aclrtAllocatorDesc;
typedef void* aclrtAllocatorBlock;
typedef void* aclrtAllocatorAddr;

#endif
