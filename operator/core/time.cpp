#include <array>
#include <charconv>
#include <cstdio>

#include "core/model.h"

namespace core {

std::string FormatTime(TimePoint time) {
  using namespace std::chrono;
  auto day = floor<days>(time);
  year_month_day date{day};
  hh_mm_ss clock{floor<seconds>(time) - day};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

namespace {

std::optional<int> Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, value);
  if (error != std::errc() || end != text.data() + at + count || value < 0) return std::nullopt;
  return value;
}

}  // namespace

// RFC 3339: date, "T", time, optional fraction, "Z" or an offset.
std::optional<TimePoint> ParseTime(std::string_view text) {
  using namespace std::chrono;
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' ||
      (text[10] != 'T' && text[10] != 't') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  auto y = Digits(text, 0, 4), mo = Digits(text, 5, 2), d = Digits(text, 8, 2);
  auto h = Digits(text, 11, 2), mi = Digits(text, 14, 2), s = Digits(text, 17, 2);
  if (!y || !mo || !d || !h || !mi || !s || *h > 23 || *mi > 59 || *s > 60) return std::nullopt;
  year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)}, day{static_cast<unsigned>(*d)}};
  if (!date.ok()) return std::nullopt;
  size_t at = 19;
  int millis = 0;
  if (at < text.size() && text[at] == '.') {
    int weight = 100;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      millis += (text[at] - '0') * weight;
      weight /= 10;
    }
  }
  minutes offset{0};
  std::string_view zone = text.substr(at);
  if (zone != "Z" && zone != "z") {
    auto oh = Digits(zone, 1, 2), om = Digits(zone, 4, 2);
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || !oh || !om) {
      return std::nullopt;
    }
    offset = (hours{*oh} + minutes{*om}) * (zone[0] == '-' ? -1 : 1);
  }
  return TimePoint{sys_days{date} + hours{*h} + minutes{*mi} + std::chrono::seconds{*s} +
                   milliseconds{millis} - offset};
}

}  // namespace core
