// SPDX-License-Identifier: Apache-2.0
// op::fp16_t, a float16 for C++ programs: 16 bits that convert to and from float as
// aclFloat16ToFloat and aclFloatToFloat16 do. Its members are this library's own.
#ifndef MOEPERM_ACLNN_OPDEV_FP16_T_H_
#define MOEPERM_ACLNN_OPDEV_FP16_T_H_

#ifdef __cplusplus

#include "acl/acl_base.h"

namespace op {

struct fp16_t {
  uint16_t val;

  fp16_t() : val(0) {}
  fp16_t(float value) : val(aclFloatToFloat16(value)) {}
  fp16_t& operator=(float value) {
    val = aclFloatToFloat16(value);
    return *this;
  }
  operator float() const { return aclFloat16ToFloat(val); }
};

}  // namespace op

#endif

#endif
