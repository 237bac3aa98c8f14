#include "mnist/flag_words.h"

#include <algorithm>

namespace mnist {

ddp::Result<std::vector<std::string>> ExpandPrefixes(const std::vector<std::string>& words,
                                                     const std::vector<std::string>& flags) {
  std::vector<std::string> out;
  for (const auto& word : words) {
    if (word == "--") {
      out.insert(out.end(), words.begin() + static_cast<int64_t>(out.size()), words.end());
      break;
    }
    if (!word.starts_with("--")) {
      out.push_back(word);
      continue;
    }
    const auto equals = word.find('=');
    const auto stem = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto value = equals == std::string::npos ? "" : word.substr(equals);
    std::vector<std::string> candidates;
    for (const auto& flag : flags) {
      if (flag == stem) {
        candidates = {flag};
        break;
      }
      if (flag.starts_with(stem)) candidates.push_back(flag);
    }
    if (candidates.size() > 1) {
      std::string names;
      for (const auto& flag : candidates) names += (names.empty() ? "--" : ", --") + flag;
      return ddp::Error{ddp::ErrorKind::kInvalid,
                        "--" + stem + " could mean " + names + ": write it out"};
    }
    out.push_back("--" + (candidates.empty() ? stem : candidates[0]) + value);
  }
  return out;
}

}  // namespace mnist
