// SPDX-License-Identifier: Apache-2.0
// What this is: versions, the SoC, attributes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"

namespace moeperm::cann {
namespace {

// The release whose interface this is.
constexpr int kMajor = 9;
constexpr int kMinor = 1;
constexpr int kRelease = 0;

constexpr std::string_view kPackages[] = {"cann",    "runtime", "compiler",   "hccl",
                                          "toolkit", "opp",     "opp_kernel", "driver"};

constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};

template <std::size_t kSize>
void Write(char (&text)[kSize], std::string_view value) {
  std::memset(text, 0, kSize);
  std::memcpy(text, value.data(), std::min(value.size(), kSize - 1));
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) try {
  if (majorVersion == nullptr || minorVersion == nullptr || patchVersion == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null("aclrtGetVersion", "one of the versions"));
  }
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetVersion");
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) try {
  constexpr const char* kFunction = "aclsysGetCANNVersion";
  if (version == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "version"));
  if (const std::int64_t given = EnumValue(name); given > ACL_PKG_NAME_DRIVER) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::BadValue(kFunction, "name", given, "0 to 7"));
  }
  Write(version->version, fmt::format("{}.{}.{}", kMajor, kMinor, kRelease));
  Write(version->majorVersion, fmt::format("{}", kMajor));
  Write(version->minorVersion, fmt::format("{}", kMinor));
  Write(version->releaseVersion, fmt::format("{}", kRelease));
  Write(version->patchVersion, "");
  Write(version->reserved, "");
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclsysGetCANNVersion");
}

// `versionStr` has room for ACL_PKG_VERSION_MAX_SIZE bytes.
aclError aclsysGetVersionStr(char* pkgName, char* versionStr) try {
  constexpr const char* kFunction = "aclsysGetVersionStr";
  if (pkgName == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "pkgName"));
  if (versionStr == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "versionStr"));
  }
  if (std::find(std::begin(kPackages), std::end(kPackages), pkgName) == std::end(kPackages)) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::UnknownPackage(kFunction, pkgName));
  }
  const std::string version = fmt::format("{}.{}.{}", kMajor, kMinor, kRelease);
  std::memcpy(versionStr, version.c_str(), version.size() + 1);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclsysGetVersionStr");
}

const char* aclrtGetSocName() try {
  const Environment& environment = GetEnvironment();
  if (environment.soc == nullptr) {
    Fail(ACL_ERROR_FAILURE, environment.problem);
    return nullptr;
  }
  return environment.soc->name.data();  // a literal
} catch (...) {
  Caught("aclrtGetSocName");
  return nullptr;
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) try {
  constexpr const char* kFunction = "aclGetCannAttributeList";
  if (cannAttrList == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "cannAttrList"));
  }
  if (num == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "num"));
  *cannAttrList = kAttributes;
  *num = std::size(kAttributes);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclGetCannAttributeList");
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) try {
  constexpr const char* kFunction = "aclGetCannAttribute";
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "value"));
  const std::int64_t attribute = EnumValue(cannAttr);
  if (attribute < ACL_CANN_ATTR_INF_NAN || attribute > ACL_CANN_ATTR_JIT_COMPILE) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::BadValue(kFunction, "cannAttr", attribute, "0 to 2"));
  }
  *value = attribute == ACL_CANN_ATTR_JIT_COMPILE ? 0 : 1;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclGetCannAttribute");
}

}  // extern "C"
