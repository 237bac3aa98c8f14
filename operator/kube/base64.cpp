#include "kube/base64.h"

#include <cstdint>

namespace kube {
namespace {

int Sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string decoded;
  uint32_t bits = 0;
  int count = 0;    // of bits that wait in `bits`
  int symbols = 0;  // sextets and padding
  int padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    ++symbols;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int sextet = Sextet(c);
    if (sextet < 0 || padding > 0) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(sextet);
    count += 6;
    if (count >= 8) {
      count -= 8;
      decoded.push_back(static_cast<char>((bits >> count) & 0xff));
    }
  }
  if (symbols % 4 != 0 || count >= 6 || padding > 2) return std::nullopt;
  return decoded;
}

}  // namespace kube
