#include "ddp/host.h"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace ddp {

std::optional<int> CgroupCpuQuota(const std::filesystem::path& root) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(root / "cpu.max"); v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return std::nullopt;
  } else {
    std::ifstream quota_v1(root / "cpu/cpu.cfs_quota_us");
    std::ifstream period_v1(root / "cpu/cpu.cfs_period_us");
    if (!(quota_v1 >> quota) || !(period_v1 >> period) || period <= 0) return std::nullopt;
  }
  char* end = nullptr;
  const double microseconds = std::strtod(quota.c_str(), &end);
  if (end == quota.c_str() || microseconds <= 0) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(microseconds / period)));
}

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int DefaultThreads(std::optional<int> quota, int usable_cpus, int local_world_size,
                   int world_size) {
  if (quota) return std::max(1, std::min(*quota, usable_cpus) / std::max(1, local_world_size));
  return world_size > 1 ? 1 : std::max(1, usable_cpus);
}

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2000 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace ddp
