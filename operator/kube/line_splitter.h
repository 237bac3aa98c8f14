#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kube {

// Makes lines of blocks. A line that lies within one block is not copied. Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line) : max_line_(max_line) {}

  // Calls on_line(std::string_view) -> bool for each line that `block` completes, without its end
  // of line and not for empty ones, until it returns false. False: a line was longer than max_line
  // and is lost, so the splitter must not be fed again.
  template <class OnLine>
  bool Feed(std::string_view block, OnLine on_line) {
    while (!block.empty()) {
      const size_t end = block.find('\n');
      const std::string_view piece = block.substr(0, end);
      if (partial_.size() + piece.size() > max_line_) {
        Clear();
        return false;
      }
      if (end == std::string_view::npos) {
        partial_.append(piece);
        return true;
      }
      block.remove_prefix(end + 1);
      bool more = true;
      if (partial_.empty()) {
        more = Emit(piece, on_line);
      } else {
        partial_.append(piece);
        more = Emit(partial_, on_line);
        Clear();
      }
      if (!more) return true;
    }
    return true;
  }

  // Bytes of a line whose end has not come.
  size_t pending() const { return partial_.size(); }

 private:
  template <class OnLine>
  static bool Emit(std::string_view line, OnLine& on_line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line.empty() || on_line(line);
  }
  // A rare huge line must not keep its memory for ever.
  void Clear() {
    constexpr size_t kKept = 1 << 16;
    if (partial_.capacity() > kKept) {
      std::string().swap(partial_);
    } else {
      partial_.clear();
    }
  }

  const size_t max_line_;
  std::string partial_;
};

}  // namespace kube
