// SPDX-License-Identifier: Apache-2.0
// Everything of the C++ API.
#pragma once

#include "moeperm/context.hpp"                     // IWYU pragma: export
#include "moeperm/dtype.hpp"                       // IWYU pragma: export
#include "moeperm/permute.hpp"                     // IWYU pragma: export
#include "moeperm/permute_with_routing_map.hpp"    // IWYU pragma: export
#include "moeperm/row_map.hpp"                     // IWYU pragma: export
#include "moeperm/sort_chunks.hpp"                 // IWYU pragma: export
#include "moeperm/status.hpp"                      // IWYU pragma: export
#include "moeperm/tensor.hpp"                      // IWYU pragma: export
#include "moeperm/unpermute.hpp"                   // IWYU pragma: export
#include "moeperm/unpermute_by_row_map.hpp"        // IWYU pragma: export
#include "moeperm/unpermute_with_routing_map.hpp"  // IWYU pragma: export
