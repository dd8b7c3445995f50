// The part that backends of LibTorch for the key PrivateUse1 share: one device, without streams.
// Included by one file of a program.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace lra {
namespace {

const at::Device kPrivateDevice(at::kPrivateUse1, 0);

at::Tensor tensor_over_storage(c10::Storage storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor t = at::Tensor::wrap_tensor_impl(c10::make_intrusive<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype()));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                 like.storage_offset());
  // The library conjugates or negates some tensors only when they are read.
  t._set_conj(like.is_conj());
  t._set_neg(like.is_neg());
  return t;
}

// A kernel may resize what it writes into: then that has other memory now.
void take_storage(const at::Tensor& t, const at::Tensor& from) {
  auto* impl = t.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(from.storage());
  impl->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

// The argument that result `index` is, when the operator writes into it; else nothing.
std::optional<size_t> written_argument(const c10::FunctionSchema& schema, size_t index) {
  const auto* result = schema.returns()[index].alias_info();
  if (!result || !result->isWrite()) return std::nullopt;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* argument = schema.arguments()[i].alias_info();
    if (argument && argument->beforeSets() == result->beforeSets()) return i;
  }
  return std::nullopt;
}

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
};

struct Guard : c10::impl::NoOpDeviceGuardImpl<at::kPrivateUse1> {
  at::Device exchangeDevice(at::Device) const override { return kPrivateDevice; }
  at::Device getDevice() const override { return kPrivateDevice; }
  c10::Stream getStream(at::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kPrivateDevice);
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kPrivateDevice);
  }
  void synchronizeDevice(c10::DeviceIndex) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

void register_private_backend(const char* name, c10::Allocator* allocator) {
  c10::register_privateuse1_backend(name);
  c10::SetAllocator(at::kPrivateUse1, allocator);
  at::RegisterPrivateUse1HooksInterface(new Hooks());
}

}  // namespace
}  // namespace lra
