#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddp/result.h"

namespace ddp {

// What a state_dict's data.pkl can hold. Nothing of it is ever executed: a global is only a name.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kTuple,       // items
    kList,        // items
    kDict,        // items: key, value, key, value, ...
    kGlobal,      // text: "module.name"
    kCall,        // items[0] was called with items[1]
    kPersistent,  // items[0] is the id, here a storage
  };
  using Pointer = std::shared_ptr<PickleValue>;  // pickles share values by memo

  Kind kind = Kind::kNone;
  int64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<Pointer> items;
};

// Reads the opcodes of protocol 2 to 4 that torch.save writes for a state_dict. Any other opcode, a
// truncated stream or a stack that does not fit is an error. State set by BUILD is dropped.
Result<PickleValue::Pointer> ParsePickle(std::string_view bytes);

// Writes the opcodes that a state_dict needs, protocol 2.
class PickleWriter {
 public:
  PickleWriter();
  void Raw(std::string_view opcodes);
  void String(std::string_view text);
  void Int(int64_t value);
  void IntTuple(const int64_t* values, size_t count);
  void Global(std::string_view module, std::string_view name);
  std::string Finish();

 private:
  std::string out_;
};

}  // namespace ddp
