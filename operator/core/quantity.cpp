#include "core/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace core {
namespace {

__extension__ typedef __int128 Int;
constexpr Int kNanosPerUnit = 1'000'000'000;

// Nano-units of one step of a suffix.
std::optional<Int> NanosOf(std::string_view suffix) {
  static constexpr std::array<std::string_view, 6> kDecimal = {"k", "M", "G", "T", "P", "E"};
  static constexpr std::array<std::string_view, 6> kBinary = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  if (suffix.empty()) return kNanosPerUnit;
  if (suffix == "n") return 1;
  if (suffix == "u") return 1'000;
  if (suffix == "m") return 1'000'000;
  for (bool binary : {false, true}) {
    Int nanos = kNanosPerUnit;
    for (std::string_view known : binary ? kBinary : kDecimal) {
      nanos *= binary ? 1024 : 1000;
      if (suffix == known) return nanos;
    }
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  int exponent = 0;
  const size_t sign = suffix.size() > 1 && suffix[1] == '+' ? 2 : 1;
  const char* end = suffix.data() + suffix.size();
  auto [at, error] = std::from_chars(suffix.data() + sign, end, exponent);
  if (error != std::errc() || at != end || exponent < -9 || exponent > 18) return std::nullopt;
  Int nanos = kNanosPerUnit;
  for (; exponent > 0; --exponent) nanos *= 10;
  for (; exponent < 0; ++exponent) nanos /= 10;
  return nanos;
}

std::string Digits(Int value) {
  std::string text;
  for (; value > 0; value /= 10) text += static_cast<char>('0' + static_cast<int>(value % 10));
  if (text.empty()) text = "0";
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace

std::optional<Quantity> Quantity::Parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  const auto step = NanosOf(text.substr(end));
  const size_t dot = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, dot);
  const std::string_view fraction = dot < number.size() ? number.substr(dot + 1) : "";
  if (!step || whole.size() + fraction.size() == 0 || whole.size() > 19 ||
      fraction.find('.') != std::string_view::npos) {
    return std::nullopt;
  }
  const Int limit = (Int{1} << 63) * kNanosPerUnit;
  Int value = 0;
  for (char digit : whole) value = value * 10 + (digit - '0');
  if (value > limit / *step) return std::nullopt;
  Int nanos = value * *step, weight = *step;
  for (char digit : fraction) {
    weight /= 10;  // below a nano-unit nothing is kept
    nanos += weight * (digit - '0');
  }
  if (nanos > limit) return std::nullopt;
  Quantity quantity;
  quantity.nano_ = negative ? -nanos : nanos;
  return quantity;
}

Quantity& Quantity::operator+=(const Quantity& other) {
  nano_ += other.nano_;
  return *this;
}

std::string Quantity::Format() const {
  static constexpr std::array<std::pair<Int, const char*>, 4> kSteps = {
      {{kNanosPerUnit, ""}, {1'000'000, "m"}, {1'000, "u"}, {1, "n"}}};
  const Int size = nano_ < 0 ? -nano_ : nano_;
  for (const auto& [step, suffix] : kSteps) {
    if (size % step == 0) return (nano_ < 0 ? "-" : "") + Digits(size / step) + suffix;
  }
  return "0";
}

}  // namespace core
