#include "core/covers.h"

#include "core/quantity.h"

namespace core {
namespace {

std::optional<Quantity> AsQuantity(const Json& value) {
  if (value.is_string()) return Quantity::Parse(value.get_ref<const std::string&>());
  if (value.is_number_integer()) return Quantity::Parse(value.dump());
  return std::nullopt;
}

}  // namespace

bool Covers(const Json& actual, const Json& wanted) {
  if (wanted.is_object()) {
    if (!actual.is_object()) return false;
    for (const auto& [key, value] : wanted.items()) {
      auto it = actual.find(key);
      if (it == actual.end() || !Covers(*it, value)) return false;
    }
    return true;
  }
  if (wanted.is_array()) {
    if (!actual.is_array() || actual.size() != wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!Covers(actual[i], wanted[i])) return false;
    }
    return true;
  }
  if (actual == wanted) return true;
  const auto a = AsQuantity(actual), b = AsQuantity(wanted);
  return a && b && *a == *b;
}

}  // namespace core
