#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace core {

// A resource.Quantity as an exact number of nano-units: the smallest step that Kubernetes knows.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
class Quantity {
 public:
  Quantity() = default;
  // None for text that is no quantity or lies beyond ±2^63 units.
  static std::optional<Quantity> Parse(std::string_view text);
  Quantity& operator+=(const Quantity& other);
  bool operator==(const Quantity&) const = default;
  // In units where that is exact, else in the largest of m, u and n that is.
  std::string Format() const;

 private:
  __extension__ typedef __int128 Nano;
  Nano nano_ = 0;
};

}  // namespace core
