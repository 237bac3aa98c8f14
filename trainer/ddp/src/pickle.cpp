#include "pickle.h"

#include <bit>
#include <cstring>

namespace ddp {
namespace {

using Kind = PickleValue::Kind;
using Pointer = PickleValue::Pointer;

struct Broken {
  std::string what;
};

class Parser {
 public:
  explicit Parser(std::string_view bytes) : in_(bytes) {}

  Pointer Run() {
    while (true) {
      const auto opcode = static_cast<unsigned char>(Take(1)[0]);
      if (opcode == '.') return Pop();
      Step(opcode);
    }
  }

 private:
  void Step(unsigned char opcode);

  std::string_view Take(uint64_t count) {
    if (count > in_.size() - at_) throw Broken{"it is cut off"};
    auto out = in_.substr(at_, count);
    at_ += count;
    return out;
  }
  uint64_t Unsigned(size_t bytes) {
    auto raw = Take(bytes);
    uint64_t out = 0;
    for (size_t i = 0; i < bytes; ++i) {
      out |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    }
    return out;
  }
  std::string Line() {
    const auto end = in_.find('\n', at_);
    if (end == std::string_view::npos) throw Broken{"it is cut off"};
    std::string out(in_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  static Pointer Make(Kind kind) {
    auto out = std::make_shared<PickleValue>();
    out->kind = kind;
    return out;
  }
  void PushInt(int64_t value) { (Push(Make(Kind::kInt)))->number = value; }
  void PushString(std::string_view text) { Push(Make(Kind::kString))->text = text; }
  PickleValue* Push(Pointer value) {
    stack_.push_back(std::move(value));
    return stack_.back().get();
  }
  Pointer Pop() {
    if (stack_.empty()) throw Broken{"its stack runs empty"};
    auto out = std::move(stack_.back());
    stack_.pop_back();
    return out;
  }
  PickleValue& Top(Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind) throw Broken{"a container is missing"};
    return *stack_.back();
  }
  std::vector<Pointer> PopToMark() {
    if (marks_.empty() || marks_.back() > stack_.size()) throw Broken{"a mark is missing"};
    std::vector<Pointer> out(stack_.begin() + static_cast<int64_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  void PushTuple(std::vector<Pointer> items) { Push(Make(Kind::kTuple))->items = std::move(items); }
  void PushTuple(size_t count) {
    std::vector<Pointer> items(count);
    for (size_t i = count; i-- > 0;) items[i] = Pop();
    PushTuple(std::move(items));
  }
  void Memoize(uint64_t key) {
    if (stack_.empty()) throw Broken{"its stack runs empty"};
    memo_[key] = stack_.back();
  }
  void Recall(uint64_t key) {
    auto found = memo_.find(key);
    if (found == memo_.end()) throw Broken{"it refers to a value that is not there"};
    Push(found->second);
  }
  void SetItems(const std::vector<Pointer>& items) {
    if (items.size() % 2 != 0) throw Broken{"a dict has a key without a value"};
    // An OrderedDict is the call of its class; items are added to the call.
    auto& target = stack_.empty() ? throw Broken{"its stack runs empty"} : *stack_.back();
    if (target.kind != Kind::kDict && target.kind != Kind::kCall) throw Broken{"no dict to fill"};
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  std::string_view in_;
  size_t at_ = 0;
  std::vector<Pointer> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, Pointer> memo_;
};

void Parser::Step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:
      Take(1);
      break;  // PROTO
    case 0x95:
      Take(8);
      break;  // FRAME
    case '(':
      marks_.push_back(stack_.size());
      break;
    case '0':
      Pop();
      break;
    case 'N':
      Push(Make(Kind::kNone));
      break;
    case 0x88:
      Push(Make(Kind::kBool))->number = 1;
      break;
    case 0x89:
      Push(Make(Kind::kBool));
      break;
    case 'K':
      PushInt(static_cast<int64_t>(Unsigned(1)));
      break;
    case 'M':
      PushInt(static_cast<int64_t>(Unsigned(2)));
      break;
    case 'J':
      PushInt(static_cast<int32_t>(Unsigned(4)));
      break;
    case 0x8a: {  // LONG1
      const auto bytes = Unsigned(1);
      if (bytes > 8) throw Broken{"a number is too large"};
      auto value = Unsigned(bytes);
      if (bytes > 0 && bytes < 8 && (value >> (8 * bytes - 1)) != 0) value |= ~0ull << (8 * bytes);
      PushInt(static_cast<int64_t>(value));
      break;
    }
    case 'G': {  // BINFLOAT, big endian
      uint64_t bits = 0;
      for (char c : Take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
      Push(Make(Kind::kFloat))->real = std::bit_cast<double>(bits);
      break;
    }
    case 'X':
      PushString(Take(Unsigned(4)));
      break;  // BINUNICODE
    case 0x8c:
      PushString(Take(Unsigned(1)));
      break;  // SHORT_BINUNICODE
    case 'U':
      PushString(Take(Unsigned(1)));
      break;  // SHORT_BINSTRING
    case 'c': {
      auto module = Line();
      auto name = Line();
      Push(Make(Kind::kGlobal))->text = module + "." + name;
      break;
    }
    case 0x93: {  // STACK_GLOBAL
      auto name = Pop();
      auto module = Pop();
      Push(Make(Kind::kGlobal))->text = module->text + "." + name->text;
      break;
    }
    case ')':
      PushTuple(size_t{0});
      break;
    case 't':
      PushTuple(PopToMark());
      break;
    case 0x85:
      PushTuple(size_t{1});
      break;
    case 0x86:
      PushTuple(size_t{2});
      break;
    case 0x87:
      PushTuple(size_t{3});
      break;
    case ']':
      Push(Make(Kind::kList));
      break;
    case '}':
      Push(Make(Kind::kDict));
      break;
    case 'a': {
      auto item = Pop();
      Top(Kind::kList).items.push_back(item);
      break;
    }
    case 'e': {
      auto items = PopToMark();
      auto& list = Top(Kind::kList);
      list.items.insert(list.items.end(), items.begin(), items.end());
      break;
    }
    case 's': {
      auto value = Pop();
      auto key = Pop();
      SetItems({key, value});
      break;
    }
    case 'u':
      SetItems(PopToMark());
      break;
    case 'R': {
      auto arguments = Pop();
      auto callable = Pop();
      Push(Make(Kind::kCall))->items = {callable, arguments};
      break;
    }
    case 'Q': {
      auto id = Pop();
      Push(Make(Kind::kPersistent))->items = {id};
      break;
    }
    case 'b':
      Pop();
      break;  // BUILD
    case 'q':
      Memoize(Unsigned(1));
      break;
    case 'r':
      Memoize(Unsigned(4));
      break;
    case 0x94:
      Memoize(memo_.size());
      break;
    case 'h':
      Recall(Unsigned(1));
      break;
    case 'j':
      Recall(Unsigned(4));
      break;
    default:
      throw Broken{"opcode " + std::to_string(opcode) + " does not belong to a state_dict"};
  }
}

}  // namespace

Result<Pointer> ParsePickle(std::string_view bytes) {
  try {
    return Parser(bytes).Run();
  } catch (const Broken& broken) {
    return Error{ErrorKind::kDamaged, "its data.pkl is damaged: " + broken.what};
  }
}

PickleWriter::PickleWriter() : out_("\x80\x02", 2) {}

void PickleWriter::Raw(std::string_view opcodes) { out_ += opcodes; }

void PickleWriter::String(std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  out_ += 'X';
  for (int i = 0; i < 4; ++i) out_ += static_cast<char>(size >> (8 * i));
  out_ += text;
}

void PickleWriter::Int(int64_t value) {
  auto bytes = [&](int count) {
    for (int i = 0; i < count; ++i) out_ += static_cast<char>(value >> (8 * i));
  };
  if (value >= 0 && value < 256) {
    out_ += 'K';
    bytes(1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    bytes(4);
  } else {
    out_ += "\x8a\x08";
    bytes(8);
  }
}

void PickleWriter::IntTuple(const int64_t* values, size_t count) {
  out_ += '(';
  for (size_t i = 0; i < count; ++i) Int(values[i]);
  out_ += 't';
}

void PickleWriter::Global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

std::string PickleWriter::Finish() { return out_ + '.'; }

}  // namespace ddp
