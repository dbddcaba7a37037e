// verdict/check_report.hpp
//
// A report of a check for other programs and for people: JSON with sorted keys, JUnit, SVG and a page of HTML.
// Guarantees: each is one self-contained text, without a clock, a path of this machine beside those it was given, or
// anything fetched from elsewhere; the same report gives the same bytes.
#pragma once
#include <string>

#include "verdict/check.hpp"

namespace plumbline {

Json to_json(const CheckReport& report);
std::string junit_of(const CheckReport& report, bool strict);  // a test case per tensor
std::string svg_of(const CheckReport& report);  // of every tensor, histogram and heat map
std::string html_of(const CheckReport& report);

// Parts of both pictures.
std::string escaped_xml(std::string_view text);
std::string short_number(long double value);  // three digits
// Margins of a tensor in classes of powers of two, and the largest margin of each row and column.
struct HeatMap {
  std::int64_t rows = 0, columns = 0;        // cells, after neighbours were put together
  std::int64_t per_row = 1, per_column = 1;  // neighbours in a cell
  std::string row_axis, column_axis;
  std::vector<double> margin;  // the largest in each cell
};
HeatMap heat_map_of(const TensorVerdict& tensor);
std::string picture_of(const TensorVerdict& tensor, double x, double y);  // a group of an SVG
constexpr double picture_width = 860;
double picture_height(const TensorVerdict& tensor);

}  // namespace plumbline
