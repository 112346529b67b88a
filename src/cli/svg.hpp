// SPDX-License-Identifier: Apache-2.0
// The pieces all pictures of the tool are made of.
#pragma once

#include <string>
#include <string_view>

namespace moeperm::cli {

std::string EscapeXml(std::string_view text);

// The document's beginning (its font, its colours, a white ground) and its end.
std::string SvgBegin(double width, double height);
inline constexpr std::string_view kSvgEnd = "</svg>\n";

// anchor: "start", "middle" or "end". `style`: more attributes, for instance " font-size=\"18\"".
std::string SvgText(double x, double y, std::string_view text, std::string_view anchor = "start",
                    std::string_view style = "");
std::string SvgRect(double x, double y, double width, double height, std::string_view fill);
std::string SvgLine(double x1, double y1, double x2, double y2, std::string_view stroke,
                    std::string_view dash = "none");

// What a text of the documents' font takes, roughly, at 13 pixels.
double SvgTextWidth(std::string_view text);

}  // namespace moeperm::cli
