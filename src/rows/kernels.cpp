// SPDX-License-Identifier: Apache-2.0
// Compiles the SIMD bodies once for each instruction set, and chooses among them.
#include "rows/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows/kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "rows/number-inl.hpp"
// number-inl.hpp defines the vector types the others use.
#include "rows/copy-inl.hpp"
#include "rows/reduce-inl.hpp"
// After reduce-inl.hpp, for its distance of fetching.
#include "rows/spread_dot-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {

const RowKernels* GetRowKernels() {
  static constexpr RowKernels kKernels = {
      Reduce<Float32Rows>,
      Reduce<Float16Rows>,
      Reduce<BFloat16Rows>,
      SpreadDot<OrderedFloat32>,
      SpreadDot<OrderedFloat16>,
      SpreadDot<OrderedBFloat16>,
      Spread,
      FillZero,
      Copy,
      FlushStream,
  };
  return &kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace moeperm {

HWY_EXPORT(GetRowKernels);

const RowKernels& RowKernelsFor(const Isa& isa) {
  return *HWY_DISPATCH_TABLE(GetRowKernels)[isa.index]();
}

}  // namespace moeperm
#endif
