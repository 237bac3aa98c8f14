#pragma once

#include <filesystem>
#include <optional>

namespace ddp {

// CPUs that the cgroup's quota allows (cpu.max of version 2, cfs_quota_us of version 1), rounded
// up; nullopt without a quota. `root` is where the cgroup file system is mounted.
std::optional<int> CgroupCpuQuota(const std::filesystem::path& root = "/sys/fs/cgroup");

// CPUs that this process may run on.
int UsableCpus();

// Threads for one of `local_world_size` processes that share a pod. More runnable threads than
// cores make OpenMP's barriers 5 to 10 times slower, so without a quota a job of several ranks gets
// 1 each, and a process that is alone gets every CPU.
int DefaultThreads(std::optional<int> quota, int usable_cpus, int local_world_size, int world_size);

// Tells glibc to keep freed memory for the next step instead of returning it to the kernel, which
// would page-fault each step's activations in anew (worth a third of a CPU step). Call it before
// the first tensor is made.
void KeepFreedMemory();

}  // namespace ddp
