// Pictures of margins: how many elements lie where between 0 and their bound, and where the large ones are.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "verdict/check_report.hpp"

namespace plumbline {
namespace {

constexpr std::int64_t most_rows = 48, most_columns = 64;
constexpr int least_class = -10,
              most_class = 6;  // exponents; below and above share the end classes
constexpr int classes = most_class - least_class + 2;
constexpr double map_left = 380, cell_area = 420, map_top = 34;

std::string text_at(double x, double y, const std::string& text, const char* extra = "") {
  char place[64];
  std::snprintf(place, sizeof place, "<text x=\"%.1f\" y=\"%.1f\" ", x, y);
  return place + std::string(extra) + ">" + escaped_xml(text) + "</text>\n";
}
std::string rectangle(double x, double y, double width, double height, const std::string& fill,
                      const std::string& title) {
  char place[128];
  std::snprintf(place, sizeof place,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"", x, y, width,
                height);
  return place + fill + "\"><title>" + escaped_xml(title) + "</title></rect>\n";
}

// 0 is white, towards the bound blue, beyond it red.
std::string colour(double margin) {
  char text[16];
  if (!(margin <= 1)) {
    const double beyond = std::min(std::log2(std::isfinite(margin) ? margin : 1e9) / 6, 1.0);
    std::snprintf(text, sizeof text, "#%02x%02x%02x", 226 - static_cast<int>(90 * beyond), 30, 40);
    return text;
  }
  const auto shade = [&](int full) {
    return 255 - static_cast<int>(std::lround((255 - full) * margin));
  };
  std::snprintf(text, sizeof text, "#%02x%02x%02x", shade(40), shade(96), shade(160));
  return text;
}

int class_of(float margin) {
  if (!(margin > 0)) return 0;
  if (std::isinf(margin)) return classes - 1;
  // Class i holds (2^(e−1), 2^e]: 1 itself still lies within.
  const int exponent = static_cast<int>(std::ceil(std::log2(static_cast<double>(margin))));
  return std::clamp(exponent, least_class, most_class + 1) - least_class;
}

std::string histogram(const TensorVerdict& tensor) {
  std::int64_t counts[classes + 1] = {};
  for (const float margin : tensor.margins) ++counts[class_of(margin)];
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(counts, counts + classes));
  const double width = 320.0 / classes, height = 120, top = map_top;
  std::string text;
  for (int i = 0; i < classes; ++i) {
    // Logarithmic, so that one element among a million shows.
    const double part = counts[i] == 0 ? 0
                                       : std::log1p(static_cast<double>(counts[i])) /
                                             std::log1p(static_cast<double>(most));
    const double tall = counts[i] == 0 ? 0 : std::max(part * height, 2.0);
    const int exponent = i + least_class;
    const std::string range = i == 0                  ? "at most 2^" + std::to_string(least_class)
                              : exponent > most_class ? "above 2^" + std::to_string(most_class)
                                                      : "up to 2^" + std::to_string(exponent);
    text += rectangle(10 + i * width, top + height - tall, width - 1, tall,
                      exponent > 0 ? "#c8202c" : "#3a6ea5",
                      std::to_string(counts[i]) + " with margin " + range);
  }
  const double bound = 10 + (1 - least_class) * width - 0.5;
  char line[128];
  std::snprintf(line, sizeof line,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#222\" "
                "stroke-dasharray=\"3 2\"/>\n",
                bound, top - 4, bound, top + height + 4);
  text += line;
  text += text_at(10, top + height + 16, "2^" + std::to_string(least_class));
  text += text_at(bound - 4, top + height + 16, "1, the bound", "text-anchor=\"middle\"");
  text += text_at(330, top + height + 16, "2^" + std::to_string(most_class), "text-anchor=\"end\"");
  return text;
}

}  // namespace

HeatMap heat_map_of(const TensorVerdict& tensor) {
  HeatMap map;
  Shape shape = tensor.shape;
  if (tensor.selection && !shape.empty()) shape.pop_back();
  // Rows are the axis after the batch, columns the one after that; all others are looked through.
  const std::size_t rank = shape.size();
  const std::size_t row = rank >= 3 ? 1 : 0, column = rank >= 3 ? 2 : 1;
  const auto size = [&](std::size_t axis) {
    return axis < rank ? std::max<std::int64_t>(shape[axis], 1) : 1;
  };
  const auto letter = [&](std::size_t axis) {
    return axis < rank && axis < tensor.axes.size() ? tensor.axes[axis] : std::string();
  };
  map.row_axis = letter(row), map.column_axis = letter(column);
  map.per_row = (size(row) + most_rows - 1) / most_rows;
  map.per_column = (size(column) + most_columns - 1) / most_columns;
  map.rows = (size(row) + map.per_row - 1) / map.per_row;
  map.columns = (size(column) + map.per_column - 1) / map.per_column;
  map.margin.assign(static_cast<std::size_t>(map.rows * map.columns), 0);
  for (std::size_t i = 0; i < tensor.margins.size(); ++i) {
    const Shape index = index_of(shape, static_cast<std::int64_t>(i));
    const std::int64_t r = rank > row ? index[row] / map.per_row : 0,
                       c = rank > column ? index[column] / map.per_column : 0;
    double& cell = map.margin[static_cast<std::size_t>(r * map.columns + c)];
    cell = std::max(cell, static_cast<double>(tensor.margins[i]));
  }
  return map;
}

double picture_height(const TensorVerdict& tensor) {
  const HeatMap map = heat_map_of(tensor);
  const double cell = std::clamp(cell_area / static_cast<double>(map.columns), 4.0, 14.0);
  return std::max(200.0, map_top + static_cast<double>(map.rows) * cell + 30);
}

std::string picture_of(const TensorVerdict& tensor, double x, double y) {
  char group[96];
  std::snprintf(group, sizeof group, "<g transform=\"translate(%.1f %.1f)\">\n", x, y);
  std::string text = group;
  text += text_at(10, 16,
                  tensor.name + " " + to_string(tensor.shape) + ": " +
                      std::string(name_of(tensor.verdict)) + ", largest margin " +
                      short_number(tensor.margin),
                  "font-weight=\"bold\"");
  if (tensor.margins.empty()) return text + text_at(10, 40, tensor.reason) + "</g>\n";
  text += histogram(tensor);
  const HeatMap map = heat_map_of(tensor);
  const double cell = std::clamp(cell_area / static_cast<double>(map.columns), 4.0, 14.0);
  for (std::int64_t r = 0; r < map.rows; ++r) {
    for (std::int64_t c = 0; c < map.columns; ++c) {
      const double margin = map.margin[static_cast<std::size_t>(r * map.columns + c)];
      const auto place = [](const std::string& axis, std::int64_t i, std::int64_t per) {
        if (axis.empty()) return std::string();
        const std::string first = axis + " " + std::to_string(i * per);
        return (per > 1 ? first + " to " + std::to_string(i * per + per - 1) : first) + ", ";
      };
      text += rectangle(
          map_left + static_cast<double>(c) * cell, map_top + static_cast<double>(r) * cell,
          cell - 0.5, cell - 0.5, colour(margin),
          place(map.row_axis, r, map.per_row) + place(map.column_axis, c, map.per_column) +
              "margin " + short_number(margin));
    }
  }
  const double below = map_top + static_cast<double>(map.rows) * cell + 14;
  const std::string down = map.row_axis.empty() ? "" : map.row_axis + " downwards";
  const std::string across = map.column_axis.empty() ? "" : map.column_axis + " to the right";
  text += text_at(map_left, below, down + (down.empty() || across.empty() ? "" : ", ") + across);
  return text + "</g>\n";
}

std::string svg_of(const CheckReport& report) {
  double height = 34;
  std::string body;
  for (const TensorVerdict& tensor : report.tensors) {
    body += picture_of(tensor, 0, height);
    height += picture_height(tensor) + 12;
  }
  char head[256];
  std::snprintf(head, sizeof head,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"11\">\n",
                picture_width, height, picture_width, height);
  return head +
         ("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
          text_at(
              10, 22,
              report.op + " under " + report.contract + ": " + std::string(name_of(report.verdict)),
              "font-size=\"15\"")) +
         body + "</svg>\n";
}

}  // namespace plumbline
