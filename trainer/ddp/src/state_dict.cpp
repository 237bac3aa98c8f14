#include "ddp/state_dict.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>

#include "atomic_file.h"
#include "backend.h"
#include "pickle.h"
#include "state_dict_bytes.h"

namespace ddp {
namespace {

using Kind = PickleValue::Kind;

struct StorageType {
  at::ScalarType type;
  const char* name;
};
constexpr StorageType kStorageTypes[] = {
    {at::kFloat, "FloatStorage"},       {at::kDouble, "DoubleStorage"}, {at::kHalf, "HalfStorage"},
    {at::kBFloat16, "BFloat16Storage"}, {at::kLong, "LongStorage"},     {at::kInt, "IntStorage"},
    {at::kShort, "ShortStorage"},       {at::kChar, "CharStorage"},     {at::kByte, "ByteStorage"},
    {at::kBool, "BoolStorage"},
};

const char* StorageName(at::ScalarType type) {
  for (const auto& known : kStorageTypes) {
    if (known.type == type) return known.name;
  }
  return nullptr;
}

// One tensor as Python pickles it: a call of _rebuild_tensor_v2 on a storage kept beside.
void WriteTensor(PickleWriter& out, const at::Tensor& tensor, size_t storage) {
  out.Global("torch._utils", "_rebuild_tensor_v2");
  out.Raw("((");
  out.String("storage");
  out.Global("torch", StorageName(tensor.scalar_type()));
  out.String(std::to_string(storage));
  out.String("cpu");
  out.Int(tensor.numel());
  out.Raw("tQ");
  out.Int(0);
  out.IntTuple(tensor.sizes().data(), tensor.sizes().size());
  out.IntTuple(tensor.strides().data(), tensor.strides().size());
  out.Raw("\x89");
  out.Global("collections", "OrderedDict");
  out.Raw(")RtR");
}

struct Damaged {
  std::string what;
};

const PickleValue& Item(const PickleValue& value, size_t index, Kind kind) {
  if (index >= value.items.size() || value.items[index]->kind != kind) {
    throw Damaged{"a tensor's record has another form than torch.save writes"};
  }
  return *value.items[index];
}

std::vector<int64_t> Numbers(const PickleValue& tuple) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < tuple.items.size(); ++i) out.push_back(Item(tuple, i, Kind::kInt).number);
  return out;
}

at::Tensor ReadTensor(caffe2::serialize::PyTorchStreamReader& reader, const PickleValue& value) {
  const PickleValue* call = &value;
  // A Parameter wraps its tensor once more.
  if (call->kind == Kind::kCall && call->items[0]->text == "torch._utils._rebuild_parameter") {
    call = &Item(Item(*call, 1, Kind::kTuple), 0, Kind::kCall);
  }
  if (call->kind != Kind::kCall || call->items[0]->text != "torch._utils._rebuild_tensor_v2") {
    throw Damaged{"it holds something that is no tensor: this is not a state_dict"};
  }
  const auto& arguments = Item(*call, 1, Kind::kTuple);
  const auto& id = Item(Item(arguments, 0, Kind::kPersistent), 0, Kind::kTuple);
  const auto& type_name = Item(id, 1, Kind::kGlobal).text;
  const auto type =
      std::find_if(std::begin(kStorageTypes), std::end(kStorageTypes),
                   [&](const auto& t) { return type_name == "torch." + std::string(t.name); });
  if (type == std::end(kStorageTypes))
    throw Damaged{"it uses " + type_name + ", which is not supported"};
  const int64_t offset = Item(arguments, 1, Kind::kInt).number;
  const auto sizes = Numbers(Item(arguments, 2, Kind::kTuple));
  const auto strides = Numbers(Item(arguments, 3, Kind::kTuple));

  auto [data, bytes] = reader.getRecord("data/" + Item(id, 2, Kind::kString).text);
  const auto elements = static_cast<int64_t>(bytes / c10::elementSize(type->type));
  int64_t last = offset;
  bool empty = false;
  if (sizes.size() != strides.size())
    throw Damaged{"a tensor has sizes and strides that do not fit"};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) throw Damaged{"a tensor has a negative size"};
    empty |= sizes[i] == 0;
    last += (sizes[i] - 1) * strides[i];
  }
  if (offset < 0 || (!empty && last >= elements)) throw Damaged{"a tensor reaches beyond its data"};
  auto flat = at::empty({elements}, at::TensorOptions().dtype(type->type));
  std::memcpy(flat.data_ptr(), data.get(), static_cast<size_t>(elements) * flat.element_size());
  return flat.as_strided(sizes, strides, offset).clone();
}

void DropModulePrefix(NamedTensors& tensors) {
  const std::string prefix = "module.";
  if (tensors.empty() || !std::all_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
        return entry.first.starts_with(prefix);
      })) {
    return;
  }
  for (auto& entry : tensors) entry.first.erase(0, prefix.size());
}

using Sink = std::function<bool(const void* bytes, size_t size)>;  // false: writing failed

Result<void> Pack(const NamedTensors& tensors, const Sink& sink) {
  try {
    at::NoGradGuard no_grad;
    PickleWriter pickle;
    std::vector<at::Tensor> data;
    pickle.Global("collections", "OrderedDict");
    pickle.Raw(")R(");
    for (const auto& [name, tensor] : tensors) {
      if (StorageName(tensor.scalar_type()) == nullptr) {
        return Error{ErrorKind::kInvalid, "tensor " + name + " has a type that cannot be saved"};
      }
      pickle.String(name);
      data.push_back(tensor.detach().to(at::kCPU).contiguous());
      WriteTensor(pickle, data.back(), data.size() - 1);
    }
    pickle.Raw("u");
    const auto records = pickle.Finish();
    caffe2::serialize::PyTorchStreamWriter writer(
        [&](const void* bytes, size_t size) { return sink(bytes, size) ? size : 0; });
    writer.writeRecord("data.pkl", records.data(), records.size());
    writer.writeRecord("byteorder", "little", 6);
    for (size_t i = 0; i < data.size(); ++i) {
      writer.writeRecord("data/" + std::to_string(i), data[i].data_ptr(), data[i].nbytes());
    }
    writer.writeEndOfFile();
    return {};
  } catch (const std::exception& e) {
    return Error{ErrorKind::kIo, ExceptionText(e)};
  }
}

NamedTensors Unpack(caffe2::serialize::PyTorchStreamReader& reader) {
  auto [data, size] = reader.getRecord("data.pkl");
  auto root = ParsePickle({static_cast<const char*>(data.get()), size});
  if (!root) throw Damaged{root.error().message};
  const auto& dict = **root;
  const bool ordered = dict.kind == Kind::kCall && dict.items.size() >= 2 &&
                       dict.items[0]->text == "collections.OrderedDict";
  if (dict.kind != Kind::kDict && !ordered) throw Damaged{"it holds no state_dict"};
  NamedTensors out;
  for (size_t i = ordered ? 2 : 0; i + 1 < dict.items.size(); i += 2) {
    out.emplace_back(Item(dict, i, Kind::kString).text, ReadTensor(reader, *dict.items[i + 1]));
  }
  DropModulePrefix(out);
  return out;
}

// Runs `read` and turns what it throws into an Error.
Result<NamedTensors> Reading(const std::string& name, const std::function<NamedTensors()>& read) {
  try {
    return read();
  } catch (const Damaged& damaged) {
    return Error{ErrorKind::kDamaged, name + ": " + damaged.what};
  } catch (const std::exception& e) {
    return Error{ErrorKind::kDamaged,
                 name + " is damaged or no file of torch.save: " + ExceptionText(e)};
  }
}

}  // namespace

Result<void> SaveStateDict(const NamedTensors& tensors, const std::filesystem::path& path) {
  AtomicFile file;
  if (auto opened = file.Open(path); !opened) return opened;
  auto packed =
      Pack(tensors, [&](const void* bytes, size_t size) { return file.Write(bytes, size); });
  if (!packed && file.ok()) {
    return Error{packed.error().kind,
                 "cannot write " + path.string() + ": " + packed.error().message};
  }
  return file.Commit();
}

Result<std::string> PackStateDict(const NamedTensors& tensors) {
  std::string out;
  auto packed = Pack(tensors, [&](const void* bytes, size_t size) {
    out.append(static_cast<const char*>(bytes), size);
    return true;
  });
  if (!packed) return packed.error();
  return out;
}

Result<NamedTensors> LoadStateDict(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) {
    return Error{ErrorKind::kIo, path.string() + " is not there or is no file"};
  }
  return Reading(path.string(), [&] {
    caffe2::serialize::PyTorchStreamReader reader(path.string());
    return Unpack(reader);
  });
}

Result<NamedTensors> UnpackStateDict(std::string_view bytes, const std::string& name) {
  return Reading(name, [&] {
    std::istringstream stream{std::string(bytes)};
    caffe2::serialize::PyTorchStreamReader reader(&stream);
    return Unpack(reader);
  });
}

}  // namespace ddp
