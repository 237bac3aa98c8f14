#pragma once

#include <cstdint>
#include <string>

namespace mnist {

// Python's repr(x) of a float: the shortest digits that read back the same, in exponent form only
// below 1e-4 or from 1e16 on, and always with a point or an exponent.
std::string PythonRepr(double value);

// Python's f"{x:.<digits>f}".
std::string Fixed(double value, int digits);

// Python's f"{part / whole: 5.1f}%" in percent, the space flag included: " 81.8%", " 100.0%".
std::string Percent(int64_t part, int64_t whole);

// Python's f"{part / whole:.0f}%" in percent: "1%".
std::string WholePercent(int64_t part, int64_t whole);

}  // namespace mnist
