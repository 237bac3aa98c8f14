#include "ddp/environment.h"

#include <charconv>
#include <string_view>

namespace ddp {
namespace {

Result<long> ReadNumber(const GetEnv& get, const char* name, long fallback, long low, long high) {
  const char* text = get(name);
  if (text == nullptr || *text == '\0') return fallback;
  const std::string_view view(text);
  long value = 0;
  auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < low || value > high) {
    return Error{ErrorKind::kInvalid, "environment variable " + std::string(name) + "=" + text +
                                          " is not a number from " + std::to_string(low) + " to " +
                                          std::to_string(high)};
  }
  return value;
}

}  // namespace

Result<Environment> ReadEnvironment(const GetEnv& get) {
  Environment out;
  auto text = [&](const char* name) -> std::string {
    const char* value = get(name);
    return value ? value : "";
  };
  auto world = ReadNumber(get, "WORLD_SIZE", 1, 1, 1 << 20);
  if (!world) return world.error();
  out.world_size = static_cast<int>(*world);
  auto rank = ReadNumber(get, "RANK", out.world_size == 1 ? 0 : -1, 0, out.world_size - 1);
  if (!rank) return rank.error();
  auto local_world = ReadNumber(get, "LOCAL_WORLD_SIZE", 1, 1, out.world_size);
  if (!local_world) return local_world.error();
  out.local_world_size = static_cast<int>(*local_world);
  auto local_rank = ReadNumber(get, "LOCAL_RANK", 0, 0, 1 << 20);
  if (!local_rank) return local_rank.error();
  out.local_rank = static_cast<int>(*local_rank);
  auto port = ReadNumber(get, "MASTER_PORT", 0, 1, 65535);
  if (!port) return port.error();
  out.master_port = static_cast<uint16_t>(*port);
  out.master_addr = text("MASTER_ADDR");
  out.interface = text("GLOO_SOCKET_IFNAME");
  out.agent_hosts_store = text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (auto attempt = text("TORCHELASTIC_RESTART_COUNT"); !attempt.empty()) out.attempt = attempt;

  if (out.world_size > 1) {
    for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) {
      if (!text(name).empty()) continue;
      return Error{ErrorKind::kInvalid, "WORLD_SIZE=" + std::to_string(out.world_size) +
                                            " needs the environment variable " + name +
                                            " too, which is not set"};
    }
  }
  out.rank = static_cast<int>(*rank);
  return out;
}

}  // namespace ddp
