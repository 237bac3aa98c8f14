#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// RFC 4648 with the standard alphabet; blanks and line breaks are skipped. Nothing if it is not
// valid.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace kube
