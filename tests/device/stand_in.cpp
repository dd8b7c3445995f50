#include "stand_in.h"

#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "private_backend.h"

namespace lra {
namespace {

using at::Tensor;
using Stack = torch::jit::Stack;

std::atomic<int64_t> num_calls = 0;

// Added to an address of the host: processors refuse addresses of which bit 62 alone is set.
#ifndef LRA_STAND_IN_APART
#define LRA_STAND_IN_APART 1  // 0 where kernels of another device are tried out on the host
#endif
constexpr uintptr_t kApart = uintptr_t{LRA_STAND_IN_APART} << 62;
void* moved(void* address, uintptr_t by) {
  return address ? reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) + by) : nullptr;
}

// ---- memory

struct Block {
  void* host;
  int64_t bytes;
};

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  c10::free_cpu(block->host);
  c10::reportMemoryUsageToProfiler(block->host, -block->bytes, 0, 0, kPrivateDevice);
  delete block;
}

struct StandInAllocator : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{c10::alloc_cpu(bytes), static_cast<int64_t>(bytes)};
    c10::reportMemoryUsageToProfiler(block->host, block->bytes, 0, 0, kPrivateDevice);
    return {moved(block->host, kApart), block, free_block, kPrivateDevice};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(moved(to, -kApart), moved(const_cast<void*>(from), -kApart), bytes);
  }
};
StandInAllocator allocator;

// ---- the same bytes as a tensor of the CPU, and back

void release(void* kept) { delete static_cast<c10::Storage*>(kept); }

Tensor host_view(const Tensor& t) {
  if (!t.defined() || t.is_cpu()) return t;
  auto* kept = new c10::Storage(t.storage());
  c10::DataPtr data(moved(kept->mutable_data(), -kApart), kept, release, at::kCPU);
  c10::Storage storage(c10::Storage::use_byte_size_t(), kept->nbytes(), std::move(data),
                       c10::GetAllocator(at::kCPU), /*resizable=*/true);
  return tensor_over_storage(std::move(storage), t, c10::DispatchKey::CPU);
}

// A result of a kernel: a view of an argument, or new.
Tensor device_result(const Tensor& t) {
  if (!t.defined()) return t;
  const c10::DataPtr& data = t.storage().data_ptr();
  constexpr auto key = c10::DispatchKey::PrivateUse1;
  if (data.get_deleter() == release) {
    return tensor_over_storage(*static_cast<c10::Storage*>(data.get_context()), t, key);
  }
  c10::Storage storage(c10::Storage::use_byte_size_t(), t.storage().nbytes(), &allocator, false);
  if (t.storage().nbytes() > 0) {
    std::memcpy(moved(storage.mutable_data(), -kApart), t.storage().data(), t.storage().nbytes());
  }
  return tensor_over_storage(std::move(storage), t, key);
}

void take_new_size(const Tensor& argument, const Tensor& host) {
  if (argument.is_cpu() || argument.sizes() == host.sizes()) return;
  take_storage(argument, device_result(host));
}

c10::IValue host_argument(const c10::IValue& value) {
  if (value.isTensor()) return host_view(value.toTensor());
  if (value.isDevice()) return at::Device(at::kCPU);
  if (value.isTensorList()) {
    std::vector<Tensor> list = value.toTensorVector();
    for (Tensor& t : list) t = host_view(t);
    return list;
  }
  if (value.isOptionalTensorList()) {
    std::vector<std::optional<Tensor>> list;
    for (const std::optional<Tensor> t : value.toOptionalTensorList()) {
      list.push_back(t ? std::optional(host_view(*t)) : t);
    }
    return list;
  }
  return value;
}

c10::IValue device_return(const c10::IValue& value) {
  if (value.isTensor()) return device_result(value.toTensor());
  if (!value.isTensorList()) return value;
  std::vector<Tensor> list = value.toTensorVector();
  for (Tensor& t : list) t = device_result(t);
  return list;
}

// ---- what a GPU would refuse

// Block lists of attention lie on the CPU on every device.
bool is_block_list(const std::string& argument) {
  return argument == "offsets" || argument == "key_blocks";
}

// Numbers may stand beside tensors, as they may for a GPU.
void check_tensor(const c10::FunctionSchema& schema, const std::string& argument, const Tensor& t) {
  if (!t.defined()) return;
  if (is_block_list(argument)) {
    TORCH_CHECK(t.is_cpu(), schema.name(), ": ", argument, " is on ", t.device(), ", not the CPU");
    return;
  }
  const bool is_number = t.is_cpu() && t.dim() == 0;
  TORCH_CHECK(t.device() == kPrivateDevice || is_number, schema.name(), ": ", argument, " is on ",
              t.device(), ", others are on ", kPrivateDevice);
}

void check_arguments(const c10::FunctionSchema& schema, at::ArrayRef<c10::IValue> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (given[i].isTensor()) check_tensor(schema, name, given[i].toTensor());
    if (given[i].isTensorList()) {
      for (const Tensor& t : given[i].toTensorVector()) check_tensor(schema, name, t);
    }
    if (given[i].isOptionalTensorList()) {
      for (const std::optional<Tensor> t : given[i].toOptionalTensorList()) {
        if (t) check_tensor(schema, name, *t);
      }
    }
  }
}

// ---- operators

void call_on_host(const c10::OperatorHandle& op, Stack* stack) {
  ++num_calls;
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto& schema = op.schema();
  const std::vector<c10::IValue> given(
      stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), stack->end());
  torch::jit::drop(*stack, given.size());
  for (const c10::IValue& value : given) stack->push_back(host_argument(value));
  const std::vector<c10::IValue> on_host(stack->end() - static_cast<std::ptrdiff_t>(given.size()),
                                         stack->end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  for (size_t i = 0; i < given.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite() || !given[i].isTensor()) continue;
    take_new_size(given[i].toTensor(), on_host[i].toTensor());
  }
  const size_t first = stack->size() - schema.returns().size();
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& result = (*stack)[first + i];
    const auto written = written_argument(schema, i);
    result = written ? given[*written] : device_return(result);
  }
}

void run(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  check_arguments(op.schema(), at::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count));
  call_on_host(op, stack);
}

void copy(const c10::OperatorHandle& op, Stack* stack) { call_on_host(op, stack); }

Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
             std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool> pinned,
             std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false));
  const at::Tensor host = at::empty(C10_AS_INTARRAYREF_SLOW(size),
                                    at::TensorOptions(dtype.value_or(at::kFloat)), format);
  return device_result(host);
}

Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                     std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                     std::optional<at::Device>, std::optional<bool>) {
  return device_result(at::empty_strided(C10_AS_INTARRAYREF_SLOW(size),
                                         C10_AS_INTARRAYREF_SLOW(stride),
                                         at::TensorOptions(dtype.value_or(at::kFloat))));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
}

// Operators that the library would compose of others here, and has its own kernels for on the CPU.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&copy>());
  m.impl("native_layer_norm", torch::CppFunction::makeFromBoxedFunction<&run>());
}

// Ours run on the host too, instead of being composed of the library's: results have the CPU's bits
// then. Where kernels of another device are tried out, what has none is composed, as on a GPU.
void run_our_operators_on_the_host() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "lra", c10::DispatchKey::PrivateUse1, __FILE__, 0);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("lra::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    library->impl(name.name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run>());
  }
}

at::Device registered() {
  if (LRA_STAND_IN_APART) run_our_operators_on_the_host();
  register_private_backend("standin", &allocator);
  return kPrivateDevice;
}

}  // namespace

at::Device stand_in() {
  static const at::Device device = registered();
  return device;
}

int64_t stand_in_calls() { return num_calls; }

}  // namespace lra
