// One training step of a preset on a GPU that has no memory and computes nothing: prints what the
// step would ask of one, a JSON object a line, for bench/gpu_ledger.py.
//
//   gpu_ledger TASK MODEL PRESET BATCH|LENGTH,LENGTH,... [SECTION.KEY=VALUE ...]
//
// The operators of ops/cuda run as they are; a launch of one of our kernels is written down, and
// LibTorch's operators give shapes (its kernels for the device `meta`). Arrays are addresses that
// no code of the host can read, so full sizes take no memory, and a read that is not a copy ends
// the program.
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "cuda_runtime.h"
#include "kernels/attention/visibility.h"
#include "ops/attention/attention_problem.h"
#include "ops/cuda/device.h"
#include "private_backend.h"
#include "training/loop/stepper.h"
#include "training/run/make_model.h"
#include "training/run/tensor_memory.h"
#include "training/settings/presets.h"

namespace lra {
namespace {

using at::Tensor;
using torch::jit::Stack;

// ---- what is written down

std::mutex ledger_mutex;  // backward passes have a thread of their own
bool is_recording = false;
std::map<std::string, int64_t> ledger;  // an entry, without its end, and how often

void write_down(const std::string& entry) {
  if (is_recording) ++ledger[entry];
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

// Numbers in memory: an expanded axis is one.
int64_t stored_bytes(const Tensor& t) {
  int64_t numbers = 1;
  for (int64_t axis = 0; axis < t.dim(); ++axis) {
    numbers *= t.stride(axis) == 0 && t.size(axis) > 0 ? 1 : t.size(axis);
  }
  return numbers * t.element_size();
}

// ---- memory: addresses only

constexpr uintptr_t kFirstAddress = uintptr_t{1} << 62;
std::map<uintptr_t, int64_t> live_blocks;  // begin, bytes
uintptr_t next_address = kFirstAddress;

void free_block(void* context) {
  const std::lock_guard lock(ledger_mutex);
  const auto begin = reinterpret_cast<uintptr_t>(context);
  c10::reportMemoryUsageToProfiler(context, -live_blocks.at(begin), 0, 0, kPrivateDevice);
  live_blocks.erase(begin);
}

struct AddressAllocator : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, kPrivateDevice};
    const std::lock_guard lock(ledger_mutex);
    auto* address = reinterpret_cast<void*>(next_address);
    live_blocks[next_address] = static_cast<int64_t>(bytes);
    next_address += (bytes + 511) / 512 * 512;
    c10::reportMemoryUsageToProfiler(address, static_cast<int64_t>(bytes), 0, 0, kPrivateDevice);
    return {address, address, free_block, kPrivateDevice};
  }
  void copy_data(void*, const void*, size_t) const override {}
};
AddressAllocator allocator;

Tensor tensor_over(c10::Storage storage, const Tensor& like) {
  return tensor_over_storage(std::move(storage), like, c10::DispatchKey::PrivateUse1);
}
Tensor new_tensor(const Tensor& like) {
  const auto bytes = static_cast<int64_t>(like.storage().nbytes());
  return tensor_over({c10::Storage::use_byte_size_t(), bytes, &allocator, false}, like);
}

// ---- LibTorch's operators: shapes by the device `meta`

// The tensors of one call as shapes, and whose shapes they are.
class Shapes {
 public:
  c10::IValue of(const c10::IValue& value) {
    if (value.isDevice()) return at::Device(at::kMeta);
    if (value.isTensor()) return of(value.toTensor());
    if (value.isTensorList()) {
      std::vector<Tensor> list = value.toTensorVector();
      for (Tensor& t : list) t = of(t);
      return list;
    }
    if (value.isOptionalTensorList()) {
      std::vector<std::optional<Tensor>> list;
      for (const std::optional<Tensor> t : value.toOptionalTensorList()) {
        list.push_back(t ? std::optional(of(*t)) : t);
      }
      return list;
    }
    return value;
  }
  // A result: a view of an argument, or new.
  Tensor result(const Tensor& meta) const {
    if (!meta.defined()) return meta;
    const auto same = from_.find(meta.storage().unsafeGetStorageImpl());
    return same == from_.end() ? new_tensor(meta) : tensor_over(same->second, meta);
  }
  c10::IValue result(const c10::IValue& value) const {
    if (value.isTensor()) return result(value.toTensor());
    if (!value.isTensorList()) return value;
    std::vector<Tensor> list = value.toTensorVector();
    for (Tensor& t : list) t = result(t);
    return list;
  }

 private:
  Tensor of(const Tensor& t) {
    if (!t.defined()) return t;
    if (t.is_cpu() && t.dim() == 0) return t;
    c10::Storage& storage = meta_[t.storage().unsafeGetStorageImpl()];
    if (!storage) {
      storage = c10::Storage(c10::Storage::use_byte_size_t(), t.storage().nbytes(),
                             c10::GetAllocator(at::kMeta), /*resizable=*/true);
      from_.emplace(storage.unsafeGetStorageImpl(), t.storage());
    }
    return tensor_over_storage(storage, t, c10::DispatchKey::Meta);
  }
  std::map<c10::StorageImpl*, c10::Storage> meta_, from_;
};

// Bytes of a call: an array that is written and read counts twice.
struct Traffic {
  int64_t read = 0, written = 0;
  std::string shapes;

  void add(const c10::IValue& value, bool reads, bool writes) {
    if (value.isTensorList()) {
      for (const Tensor& t : value.toTensorVector()) add(t, reads, writes);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<Tensor> t : value.toOptionalTensorList()) {
        if (t) add(*t, reads, writes);
      }
    } else if (value.isTensor()) {
      add(value.toTensor(), reads, writes);
    }
  }
  void add(const Tensor& t, bool reads, bool writes) {
    if (!t.defined()) return;
    read += reads ? stored_bytes(t) : 0;
    written += writes ? stored_bytes(t) : 0;
    shapes += (shapes.empty() ? "[" : ",[") + c10::Join(",", t.sizes()) + "]";
  }
};

bool only_writes(const std::string& op) {
  return op == "aten::copy_" || op == "aten::fill_" || op == "aten::zero_" ||
         op.ends_with("random_");
}

// Writes down an operator that is not a view.
void record(const c10::FunctionSchema& schema, at::ArrayRef<c10::IValue> given,
            at::ArrayRef<c10::IValue> results) {
  Traffic traffic;
  for (size_t i = 0; i < given.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool writes = argument.alias_info() && argument.alias_info()->isWrite();
    traffic.add(given[i], !argument.is_out() && !(writes && only_writes(schema.name())), writes);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (schema.returns()[i].alias_info()) {
      if (!schema.returns()[i].alias_info()->isWrite()) return;  // a view
      continue;
    }
    traffic.add(results[i], false, true);
  }
  write_down(c10::str("{\"op\":", quoted(schema.name()), ",\"shapes\":[", traffic.shapes,
                      "],\"read\":", traffic.read, ",\"written\":", traffic.written));
}

// A real transform has no kernel for `meta`: half of the numbers of the last axis.
Tensor transformed(const std::string& op, const Stack& given) {
  const Tensor x = given[0].toTensor();
  const auto axis = given[1].toIntVector().back();
  auto sizes = x.sizes().vec();
  auto& last = sizes.at(static_cast<size_t>(axis < 0 ? axis + x.dim() : axis));
  auto type = x.scalar_type();
  if (op == "aten::_fft_r2c") {
    type = c10::toComplexType(type);
    if (given[3].toBool()) last = last / 2 + 1;
  } else if (op == "aten::_fft_c2r") {
    type = c10::toRealValueType(type);
    last = given[3].toInt();
  }
  return at::empty(sizes, x.options().dtype(type));
}

// The result of an operator without a kernel for `meta`: the CPU's, of zeros.
c10::IValue zeros_like(const c10::IValue& value, bool is_written) {
  const auto zeros = [&](const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return t;
    const auto options = t.options().device(at::kCPU);
    if (is_written) return at::zeros(t.sizes(), options);
    return at::zeros({1}, options).as_strided(t.sizes(), std::vector<int64_t>(t.dim(), 0));
  };
  if (value.isDevice()) return at::Device(at::kCPU);
  if (value.isTensor()) return zeros(value.toTensor());
  if (value.isOptionalTensorList()) {
    std::vector<std::optional<Tensor>> list;
    for (const std::optional<Tensor> t : value.toOptionalTensorList()) {
      list.push_back(t ? std::optional(zeros(*t)) : t);
    }
    return list;
  }
  if (!value.isTensorList()) return value;
  std::vector<Tensor> list = value.toTensorVector();
  for (Tensor& t : list) t = zeros(t);
  return list;
}

void call_on_zeros(const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const Stack given(stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()),
                    stack->end());
  torch::jit::drop(*stack, given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    stack->push_back(zeros_like(given[i], alias && alias->isWrite()));
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t first = stack->size() - schema.returns().size();
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const auto written = written_argument(schema, i);
    c10::IValue& result = (*stack)[first + i];
    if (written) {
      const Tensor &to = given[*written].toTensor(), from = result.toTensor();
      if (to.sizes() != from.sizes()) take_storage(to, new_tensor(from));
      result = to;
    } else if (result.isTensor() && result.toTensor().defined()) {
      result = new_tensor(result.toTensor());
    }
  }
}

void run(const c10::OperatorHandle& op, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto& schema = op.schema();
  const auto count = static_cast<std::ptrdiff_t>(schema.arguments().size());
  const Stack given(stack->end() - count, stack->end());
  if (schema.name().starts_with("aten::_fft_")) {
    torch::jit::drop(*stack, given.size());
    stack->push_back(transformed(schema.name(), given));
    return record(schema, given, at::ArrayRef<c10::IValue>(*stack).slice(stack->size() - 1));
  }
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
    call_on_zeros(op, stack);
    return record(schema, given,
                  at::ArrayRef<c10::IValue>(*stack).slice(stack->size() - schema.returns().size()));
  }
  Shapes shapes;
  torch::jit::drop(*stack, given.size());
  for (const c10::IValue& value : given) stack->push_back(shapes.of(value));
  const Stack metas(stack->end() - count, stack->end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  for (size_t i = 0; i < given.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite() || !given[i].isTensor()) continue;
    const Tensor &to = given[i].toTensor(), &meta = metas[i].toTensor();
    if (to.sizes() != meta.sizes()) take_storage(to, new_tensor(meta));
  }
  const size_t first = stack->size() - schema.returns().size();
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const auto written = written_argument(schema, i);
    c10::IValue& result = (*stack)[first + i];
    result = written ? given[*written] : shapes.result(result);
  }
  record(schema, given, at::ArrayRef<c10::IValue>(*stack).slice(first));
}

Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
             std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  return new_tensor(at::empty(C10_AS_INTARRAYREF_SLOW(size),
                              at::TensorOptions(dtype.value_or(at::kFloat)).device(at::kMeta),
                              format));
}
Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                     std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                     std::optional<at::Device>, std::optional<bool>) {
  return new_tensor(
      at::empty_strided(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                        at::TensorOptions(dtype.value_or(at::kFloat)).device(at::kMeta)));
}

// Copies between host and device, and others.
Tensor& copy(Tensor& self, const Tensor& from, bool) {
  if (self.is_cpu() || from.is_cpu()) {
    write_down(c10::str("{\"copy\":", quoted(self.is_cpu() ? "to host" : "from host"),
                        ",\"bytes\":", self.nbytes()));
    if (self.is_cpu()) self.fill_(1);
    return self;
  }
  static const auto schema = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  record(schema.schema(), {self, from, false}, {self});
  return self;
}
at::Scalar item(const Tensor& t) {
  write_down(c10::str("{\"copy\":\"to host\",\"bytes\":", t.element_size()));
  return t.scalar_type() == at::kBool ? at::Scalar(true) : at::Scalar(1);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy);
  m.impl("_local_scalar_dense", item);
}

// ---- our operators

// A call of one of our operators: its arrays by address, and the pairs that its attention sees.
struct InCall : at::ObserverContext {};
struct Call {
  std::string name;
  int64_t pairs = 0;
  std::map<uintptr_t, int64_t> arrays;
  std::set<std::pair<void*, uintptr_t>> seen;  // by its kernels
};
std::vector<std::unique_ptr<Call>> calls;  // the innermost last
int64_t chunk_of_runs = 0;

int64_t pairs_of(ops::AttentionArguments a) {
  if (a.pattern.runs.defined()) return a.in.q.numel() / a.in.q.size(3) * 2 * chunk_of_runs;
  return kernels::count_visible_pairs(ops::AttentionCall(a).get());
}

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
  const std::string name = function.name();
  // Functions of autograd have names of C++ classes, and no operator.
  if (!function.operator_name() || !name.starts_with("lra::")) return nullptr;
  auto call = std::make_unique<Call>();
  call->name = name;
  for (const c10::IValue& value : function.inputs()) {
    if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().is_cpu()) continue;
    const Tensor& t = value.toTensor();
    if (t.numel() > 0) call->arrays[reinterpret_cast<uintptr_t>(t.data_ptr())] = stored_bytes(t);
  }
  if (name == "lra::sorted_runs") chunk_of_runs = function.inputs()[2].toInt();
  if (name == "lra::attention_forward" || name == "lra::attention_backward") {
    call->pairs = pairs_of(ops::attention_arguments(function.inputs()));
  }
  calls.push_back(std::move(call));
  return std::make_unique<InCall>();
}
void end_call(const at::RecordFunction&, at::ObserverContext* context) {
  if (context) calls.pop_back();
}

// Bytes of the array at an address, 0 if there is none: an argument of the operator, or what is
// left of a block of memory.
int64_t array_bytes(const Call& call, uintptr_t address) {
  if (address < kFirstAddress || address >= next_address) return 0;
  if (const auto array = call.arrays.find(address); array != call.arrays.end()) {
    return array->second;
  }
  auto block = live_blocks.upper_bound(address);
  if (block == live_blocks.begin()) return 0;
  --block;
  const auto offset = static_cast<int64_t>(address - block->first);
  return std::max<int64_t>(0, block->second - offset);
}

// Each array counts once for each kernel of a call, which may take it in parts.
void launched(void* kernel, dim3 grid, dim3 block, size_t shared_bytes,
              std::span<const std::span<const std::byte>> arguments) {
  const std::lock_guard lock(ledger_mutex);
  LRA_CHECK(!calls.empty());
  Call& call = *calls.back();
  int64_t bytes = 0;
  for (const auto& argument : arguments) {
    for (size_t at = 0; at + sizeof(uintptr_t) <= argument.size(); at += sizeof(uintptr_t)) {
      uintptr_t address = 0;
      std::memcpy(&address, argument.data() + at, sizeof(address));
      const int64_t found = array_bytes(call, address);
      if (found > 0 && call.seen.emplace(kernel, address).second) bytes += found;
    }
  }
  Dl_info program;
  LRA_CHECK(dladdr(kernel, &program) != 0);
  const auto place = static_cast<char*>(kernel) - static_cast<char*>(program.dli_fbase);
  write_down(c10::str("{\"kernel\":", place, ",\"of\":", quoted(call.name),
                      ",\"blocks\":", int64_t{grid.x} * grid.y * grid.z,
                      ",\"threads\":", block.x * block.y, ",\"shared\":", shared_bytes,
                      ",\"bytes\":", bytes, ",\"pairs\":", call.pairs));
}

// ---- the step

// "32": so many examples of full length; "900,1200": examples of these lengths, padded to the
// longest.
training::Batch batch_of(const TaskShape& shape, const std::string& text) {
  std::vector<int32_t> numbers;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');) numbers.push_back(std::stoi(number));
  const bool is_full = numbers.size() == 1;
  const int64_t examples = is_full ? numbers[0] : static_cast<int64_t>(numbers.size());
  const int64_t length = is_full ? shape.length : *std::ranges::max_element(numbers);
  const Tensor tokens = at::ones({examples * shape.num_towers, length}, at::kInt);
  const Tensor lengths_B = at::tensor(numbers, at::kInt).repeat_interleave(shape.num_towers);
  return {.input = training::input_of(tokens, is_full ? Tensor() : lengths_B, shape),
          .labels_B = at::zeros({examples}, at::kLong),
          .num_tokens = is_full ? tokens.numel() : lengths_B.sum().item<int64_t>()};
}

void print_ledger(const training::RunConfig& run, const TaskShape& shape,
                  const training::Batch& batch, const models::SequenceClassifier& model,
                  int64_t peak) {
  for (const auto& [entry, count] : ledger) {
    std::cout << entry << ",\"count\":" << count << "}\n";
  }
  std::cout << "{\"step\":" << quoted(run.task + " " + run.model + " " + run.preset)
            << ",\"rows\":" << batch.labels_B.size(0) * shape.num_towers
            << ",\"length\":" << shape.length << ",\"tokens\":" << batch.num_tokens
            << ",\"positions\":" << model.num_positions(batch.input)
            << ",\"width\":" << run.model_config.embed_dim
            << ",\"layers\":" << run.model_config.layers
            << ",\"parameters\":" << model.num_parameters()
            << ",\"element\":" << (run.train.precision == "bf16" ? 2 : 4) << ",\"peak\":" << peak
            << "}\n";
}

void count_step(const training::RunConfig& run, const std::string& batch) {
  const TaskShape shape = run.make_task()->shape();
  const training::TensorMemory memory(kPrivateDevice);
  const auto model = training::make_model(run, shape, kPrivateDevice);
  training::FlatParameters parameters(model);
  training::Stepper stepper(model, parameters, run.train, run.seed, training::one_rank(),
                            run.groups);
  const training::Batch examples = batch_of(shape, batch);
  for (int64_t step = 0; step < 2; ++step) {
    is_recording = step == 1;  // what is made once is there then
    LRA_CHECK(stepper.step(std::span(&examples, 1), step, step).weights_are_finite);
  }
  print_ledger(run, shape, examples, model, memory.peak_bytes());
}

}  // namespace

// ---- ops/cuda/device.h for a device that only counts

namespace ops::device {
namespace {

Tensor counted(const char* op, const std::vector<Tensor>& from, const Tensor& to) {
  Traffic traffic;
  for (const Tensor& t : from) traffic.add(t, true, false);
  traffic.add(to, false, true);
  write_down(c10::str("{\"op\":", quoted(op), ",\"shapes\":[", traffic.shapes,
                      "],\"read\":", traffic.read, ",\"written\":", traffic.written));
  return to;
}

}  // namespace

kernels::cuda::Stream current_stream(const Tensor&) { return nullptr; }

Tensor copy_to_device(const Tensor& host, const Tensor& like) { return host.to(like.device()); }

Tensor wide_product(const Tensor& a, const Tensor& b) {
  return counted("aten::mm", {a, b},
                 at::empty({a.size(0), b.size(1)}, a.options().dtype(wide_type(a))));
}

std::tuple<Tensor, Tensor> library_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                             double) {
  return {counted("flash_attention_forward", {q, k, v}, at::empty(q.sizes(), q.options())),
          at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(at::kFloat))};
}

std::tuple<Tensor, Tensor, Tensor> library_attention_backward(const Tensor& grad, const Tensor& q,
                                                              const Tensor& k, const Tensor& v,
                                                              const Tensor& out, const Tensor&,
                                                              double) {
  const auto like = [](const Tensor& t) { return at::empty(t.sizes(), t.options()); };
  return {counted("flash_attention_backward", {q, k, v, out, grad, q, k}, like(q)), like(k),
          like(v)};
}

}  // namespace ops::device
}  // namespace lra

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  if (given.size() < 4) {
    std::cerr << "gpu_ledger TASK MODEL PRESET BATCH|LENGTH,LENGTH,... [SECTION.KEY=VALUE ...]\n";
    return 2;
  }
  using namespace lra;
  at::set_num_threads(1);
  register_private_backend("counted", &allocator);
  simulated::observe = launched;
  at::addGlobalCallback(at::RecordFunctionCallback(begin_call, end_call)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
  count_step(
      training::resolve_run(given[0], given[1], given[2], 0, {}, {given.begin() + 4, given.end()}),
      given[3]);
  return 0;
}
