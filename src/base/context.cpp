// SPDX-License-Identifier: Apache-2.0
#include "base/context.hpp"

#include <charconv>
#include <cstddef>
#include <cstdlib>

#include "base/status_macros.hpp"

namespace moeperm {
namespace {

Status ParseThreads(std::string_view source, std::string_view text, int* threads) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *threads);
  if (error != std::errc() || end != text.data() + text.size() || *threads < 1 ||
      *threads > kMaxThreads) {
    return msg::BadThreadCount(source, text, kMaxThreads);
  }
  return {};
}

Status ChooseThreads(int wanted, int* threads) {
  if (wanted != 0) {
    if (wanted < 1 || wanted > kMaxThreads) {
      return msg::BadThreadCount("num_threads", std::to_string(wanted), kMaxThreads);
    }
    *threads = wanted;
    return {};
  }
  if (const char* text = std::getenv("MOEPERM_NUM_THREADS"); text != nullptr) {
    return ParseThreads("MOEPERM_NUM_THREADS", text, threads);
  }
  *threads = DefaultThreadCount();
  return {};
}

Status ChooseIsa(std::string_view wanted, const Isa** isa) {
  std::string_view source = "isa";
  if (wanted.empty()) {
    const char* text = std::getenv("MOEPERM_ISA");
    if (text == nullptr) {
      *isa = &SupportedIsas().front();
      return {};
    }
    source = "MOEPERM_ISA";
    wanted = text;
  }
  *isa = FindIsa(wanted);
  if (*isa != nullptr) return {};
  std::string available;
  for (const Isa& one : SupportedIsas()) {
    if (!available.empty()) available += ", ";
    available += one.name;
  }
  return msg::UnknownIsa(source, wanted, available);
}

// What a context is where not even its own memory could be had.
const Context::Impl& NoMemory() {
  alignas(Context::Impl) static std::byte storage[sizeof(Context::Impl)];
  static const auto& impl =
      *new (storage) Context::Impl{{Code::kOutOfMemory, {}}, nullptr, std::nullopt};
  return impl;
}

}  // namespace

Context::Context(const ContextOptions& options) noexcept {
  try {
    auto impl = std::make_shared<Impl>();
    impl->status = Guarded([&]() -> Status {
      int threads = 0;
      MOEPERM_TRY(ChooseThreads(options.num_threads, &threads));
      MOEPERM_TRY(ChooseIsa(options.isa, &impl->isa));
      impl->pool.emplace(threads);
      return {};
    });
    impl_ = std::move(impl);
  } catch (const std::bad_alloc&) {
    impl_ = std::shared_ptr<const Impl>(std::shared_ptr<void>(), &NoMemory());
  }
}

const Context& Context::Default() noexcept {
  // Never destroyed: calls from other threads may outlive the end of main().
  alignas(Context) static std::byte storage[sizeof(Context)];
  static const Context& context = *new (storage) Context();
  return context;
}

const Status& Context::status() const noexcept { return impl_->status; }
int Context::num_threads() const noexcept { return impl_->pool ? impl_->pool->num_threads() : 0; }
std::string_view Context::isa() const noexcept {
  return impl_->status.ok() ? std::string_view(impl_->isa->name) : std::string_view();
}

std::vector<std::string> AvailableIsas() {
  std::vector<std::string> names;
  for (const Isa& isa : SupportedIsas()) names.push_back(isa.name);
  return names;
}

std::string_view Version() noexcept { return MOEPERM_VERSION; }

}  // namespace moeperm
