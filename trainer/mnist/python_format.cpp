#include "mnist/python_format.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace mnist {

std::string PythonRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  char buffer[64];
  auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);  // d[.ddd]e[+-]dd
  const auto e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;
  auto fixed = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

std::string Fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

std::string Percent(int64_t part, int64_t whole) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "% 5.1f%%",
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return buffer;
}

std::string WholePercent(int64_t part, int64_t whole) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.0f%%",
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return buffer;
}

}  // namespace mnist
