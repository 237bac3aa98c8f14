#pragma once

#include <memory>
#include <string>

#include "backend.h"
#include "ddp/result.h"

namespace ddp {

// After a collective call failed: finds out who is gone. Every survivor marks itself in the store
// and looks who does not, for up to a second; a store that is silent or closed means that rank 0 is
// gone. `cause` is the backend's own text.
Error LostRankError(std::shared_ptr<Store> store, int rank, int world_size,
                    const std::string& cause);

}  // namespace ddp
