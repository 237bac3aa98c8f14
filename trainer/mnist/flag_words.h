#pragma once

#include <string>
#include <vector>

#include "ddp/result.h"

namespace mnist {

// Completes "--epo=1" and "--epo" to "--epochs", as Python's argparse does, when one of `flags`
// (without dashes) alone begins so. Fails naming the candidates when several do. Words that match
// no flag stay as they are.
ddp::Result<std::vector<std::string>> ExpandPrefixes(const std::vector<std::string>& words,
                                                     const std::vector<std::string>& flags);

}  // namespace mnist
