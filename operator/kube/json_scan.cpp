#include "kube/json_scan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace kube {
namespace {

// A set of characters to search for; string_view::find_first_of is several times slower.
class CharSet {
 public:
  constexpr explicit CharSet(std::string_view members) {
    for (const char c : members) has_[static_cast<unsigned char>(c)] = true;
  }
  size_t FindFirst(std::string_view text, size_t at) const {
    while (at < text.size() && !has_[static_cast<unsigned char>(text[at])]) ++at;
    return at < text.size() ? at : std::string_view::npos;
  }

 private:
  std::array<bool, 256> has_{};
};
constexpr CharSet kStringSpecials("\"\\");
constexpr CharSet kBrackets("\"{}[]");
constexpr CharSet kLiteralEnds(",}] \t\r\n");

// Walks over a JSON text. After a failure `ok` is false and all answers are empty.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool ok() const { return ok_; }

  // Calls on_member(key, value) for each member of the object at the cursor. Keys are compared as
  // they are written, without unescaping: no API server escapes a letter.
  template <class OnMember>
  void Object(OnMember on_member) {
    if (!Take('{')) return;
    if (TakeIf('}')) return;
    do {
      const std::string_view key = String();
      if (!Take(':')) return;
      const std::string_view value = Value();
      if (!ok_) return;
      on_member(key.substr(1, key.size() - 2), value);
    } while (TakeIf(','));
    Take('}');
  }

  template <class OnElement>
  void Array(OnElement on_element) {
    if (!Take('[')) return;
    if (TakeIf(']')) return;
    do {
      const std::string_view value = Value();
      if (!ok_) return;
      on_element(value);
    } while (TakeIf(','));
    Take(']');
  }

  bool AtEnd() {
    Blanks();
    return at_ == text_.size();
  }

 private:
  std::string_view Value() {
    Blanks();
    if (at_ == text_.size()) return Fail();
    switch (text_[at_]) {
      case '"':
        return String();
      case '{':
      case '[':
        return Bracketed();
      default:
        return Literal();
    }
  }

  std::string_view String() {
    Blanks();
    if (at_ == text_.size() || text_[at_] != '"') return Fail();
    const size_t begin = at_;
    SkipString();
    return ok_ ? text_.substr(begin, at_ - begin) : std::string_view();
  }

  // From an opening quote to behind the closing one.
  void SkipString() {
    ++at_;
    while (true) {
      at_ = kStringSpecials.FindFirst(text_, at_);
      if (at_ == std::string_view::npos) break;
      if (text_[at_] == '"') {
        ++at_;
        return;
      }
      at_ += 2;  // a backslash and what it escapes; the digits of \uXXXX are plain characters
      if (at_ > text_.size()) break;
    }
    Fail();
  }

  // An object or array as a whole, without recursion, since its depth is the sender's choice.
  std::string_view Bracketed() {
    const size_t begin = at_;
    std::string closers;
    while (true) {
      at_ = kBrackets.FindFirst(text_, at_);
      if (at_ == std::string_view::npos) return Fail();
      const char c = text_[at_];
      if (c == '"') {
        SkipString();
        if (!ok_) return {};
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') {
        closers.push_back(c == '{' ? '}' : ']');
        continue;
      }
      if (closers.back() != c) return Fail();
      closers.pop_back();
      if (closers.empty()) return text_.substr(begin, at_ - begin);
    }
  }

  std::string_view Literal() {
    const size_t begin = at_;
    at_ = std::min(kLiteralEnds.FindFirst(text_, at_), text_.size());
    return at_ > begin ? text_.substr(begin, at_ - begin) : Fail();
  }

  void Blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool TakeIf(char c) {
    Blanks();
    if (!ok_ || at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Take(char c) {
    if (TakeIf(c)) return true;
    Fail();
    return false;
  }
  std::string_view Fail() {
    ok_ = false;
    at_ = text_.size();
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  bool ok_ = true;
};

// The text of a JSON string token, "" for any other token.
std::string Unquoted(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return "";
  const std::string_view inner = token.substr(1, token.size() - 2);
  if (inner.find('\\') == std::string_view::npos) return std::string(inner);
  const auto parsed = nlohmann::json::parse(token, nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : "";
}

std::string_view InnerOf(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' ? token.substr(1, token.size() - 2) : "";
}

}  // namespace

std::optional<WatchFrame> ScanWatchFrame(std::string_view line) {
  WatchFrame frame;
  Cursor cursor(line);
  cursor.Object([&frame](std::string_view key, std::string_view value) {
    if (key == "type") frame.type = InnerOf(value);
    if (key == "object" && value.front() == '{') frame.object = value;
  });
  if (!cursor.ok() || !cursor.AtEnd() || frame.type.empty() || frame.object.empty()) {
    return std::nullopt;
  }
  std::string_view metadata;
  Cursor object(frame.object);
  object.Object([&metadata](std::string_view key, std::string_view value) {
    if (key == "metadata" && value.front() == '{') metadata = value;
  });
  if (!object.ok()) return std::nullopt;
  if (!metadata.empty()) {
    Cursor(metadata).Object([&frame](std::string_view key, std::string_view value) {
      if (key == "resourceVersion") frame.resource_version = Unquoted(value);
    });
  }
  return frame;
}

StatusText ScanStatus(std::string_view object) {
  StatusText status;
  Cursor(object).Object([&status](std::string_view key, std::string_view value) {
    if (key == "code") std::from_chars(value.data(), value.data() + value.size(), status.code);
    if (key == "message") status.message = Unquoted(value);
  });
  return status;
}

std::optional<ListPage> ScanList(std::string_view text) {
  ListPage page;
  bool items_ok = true;
  Cursor cursor(text);
  cursor.Object([&](std::string_view key, std::string_view value) {
    if (key == "metadata" && value.front() == '{') {
      Cursor(value).Object([&page](std::string_view name, std::string_view token) {
        if (name == "resourceVersion") page.resource_version = Unquoted(token);
        if (name == "continue") page.continue_token = Unquoted(token);
      });
    } else if (key == "items" && value.front() == '[') {
      Cursor items(value);
      items.Array([&page](std::string_view item) { page.items.push_back(item); });
      items_ok = items.ok();
    }
  });
  if (!cursor.ok() || !items_ok || !cursor.AtEnd() || page.resource_version.empty()) {
    return std::nullopt;
  }
  return page;
}

}  // namespace kube
