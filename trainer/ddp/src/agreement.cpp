#include <ATen/ATen.h>

#include <functional>

#include "ddp/communicator.h"

namespace ddp {

Result<void> CheckAgreement(Communicator& communicator,
                            const std::map<std::string, std::string>& facts) {
  if (communicator.world_size() == 1) return {};
  std::string text;
  for (const auto& [name, value] : facts) text += name + "=" + value + "\n";
  // The digest keeps the usual case to two small messages.
  const auto digest = static_cast<int64_t>(std::hash<std::string>{}(text) >> 1);
  auto range = at::tensor({digest, -digest}, at::kLong);
  if (auto reduced = communicator.AllReduce(range, ReduceOp::kMax); !reduced) return reduced;
  if (range[0].item<int64_t>() == digest && range[1].item<int64_t>() == -digest) {
    // The greatest and the least digest are this rank's: that holds on all ranks or on none.
    return {};
  }
  auto texts = communicator.AllGatherText(text);
  if (!texts) return texts.error();
  std::string differences;
  for (const auto& [name, value] : facts) {
    auto value_in = [&](const std::string& all) -> std::string {
      const auto at = ("\n" + all).find("\n" + name + "=");
      if (at == std::string::npos) return "absent";
      const auto from = at + name.size() + 1;
      return all.substr(from, all.find('\n', from) - from);
    };
    for (size_t r = 1; r < texts->size(); ++r) {
      const auto first = value_in((*texts)[0]), other = value_in((*texts)[r]);
      if (first == other) continue;
      differences += "; " + name + " is " + first + " on rank 0 and " + other + " on rank " +
                     std::to_string(r);
      break;
    }
  }
  return Error{
      ErrorKind::kDisagree,
      "the ranks were started differently" +
          (differences.empty() ? std::string("; they name different facts") : differences)};
}

}  // namespace ddp
