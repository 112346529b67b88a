# SPDX-License-Identifier: Apache-2.0
# Short names for the commands of the project; CMakePresets.json has the builds behind them.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench format lint asan ubsan tsan nightly fuzz install \
  install-cann clean

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

# Configures a preset and builds all of it, or the targets of $(2); what it prints is shown where it
# fails.
define build
	@mkdir -p build
	@echo "building $(1)"
	@{ cmake --preset $(1) && \
	   cmake --build --preset $(1) --parallel $(JOBS) $(if $(2),--target $(2)); } \
	  >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
endef

# Builds a preset and runs its tests: the failures whole, and ctest's closing lines.
define test
	$(call build,$(1))
	@scripts/run-tests $(1) $(JOBS)
endef

help: ## this list
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## /  \1	/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install the Debian packages that all below needs
	@scripts/setup

build: setup ## build the library, the command-line tool, the tests and the benchmarks
	$(call build,release)

demo: setup ## show what the library does, on two full-size cases
	$(call build,release,moeperm-cli)
	@scripts/demo $(CURDIR)/build/release

test: setup ## build all and run the tests
	$(call test,release)

bench: build ## run the benchmarks
	@build/release/bench/permute_bench

format: ## format the C and C++ files
	@scripts/format

lint: setup ## run clang-tidy over the sources
	@scripts/lint

asan: setup ## test with AddressSanitizer and LeakSanitizer
	$(call test,asan)

ubsan: setup ## test with UndefinedBehaviorSanitizer
	$(call test,ubsan)

tsan: setup ## test with ThreadSanitizer
	$(call test,tsan)

nightly: setup ## run the exhaustive tests too
	$(call test,nightly)

fuzz: setup ## run the fuzzers for a short time
	$(call build,fuzz)
	@scripts/run-tests fuzz $(JOBS) --tests-regex '^fuzz\.'

install: setup ## build and install the library and the tool below PREFIX (/usr/local)
	$(call build,release,moeperm-installed)
	@cmake --install build/release --prefix $(PREFIX)

# Where programs look that set no ASCEND_HOME_PATH, unless PREFIX says otherwise.
install-cann: CANN_PREFIX = $(if $(filter file,$(origin PREFIX)),/usr/local/Ascend/cann,$(PREFIX))
install-cann: setup ## install the acl and aclnn interface as PREFIX (/usr/local/Ascend/cann)
	$(call build,release,moeperm-cann-prefix)
	@cmake --install build/release --component cann --prefix '$(CANN_PREFIX)' >build/install-cann.log
	@echo "installed; now: source '$(CANN_PREFIX)/set_env.sh'"

clean: ## remove everything built
	@rm -rf build
