#pragma once

#include <cstddef>
#include <functional>

namespace runtime {

// Calls `work(i)` for each i below `count`, on the caller's thread and on up to `width` - 1 more
// that live for this call only. Returns when all calls have returned. `work` must not throw.
void ForEachParallel(std::size_t count, std::size_t width,
                     const std::function<void(std::size_t)>& work);

}  // namespace runtime
