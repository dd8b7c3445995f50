#include "analysis/operator_calls.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

namespace lra::analysis {
namespace {

const c10::DebugInfoKind kSlot = c10::DebugInfoKind::PRODUCER_INFO;

struct Ear : c10::DebugInfoBase {
  explicit Ear(const std::function<void(std::string_view, OperatorInputs)>& hear) : hear(hear) {}
  const std::function<void(std::string_view, OperatorInputs)>& hear;
};

std::unique_ptr<at::ObserverContext> on_call(const at::RecordFunction& call) {
  auto* ear = static_cast<Ear*>(c10::ThreadLocalDebugInfo::get(kSlot));
  if (ear) ear->hear(call.name(), call.inputs());
  return nullptr;
}

// Listens to this thread's operators while it lives.
class Listener {
 public:
  Listener()
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(on_call).needsInputs(true).scopes(
                {at::RecordScope::FUNCTION}))) {}
  ~Listener() { at::removeCallback(handle_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

void listen_to_operators(const std::function<void()>& compute,
                         const std::function<void(std::string_view, OperatorInputs)>& hear) {
  const c10::DebugInfoGuard slot(kSlot, std::make_shared<Ear>(hear));
  // Autograd would make the listener hear an operator twice, from outside and from within.
  const at::AutoDispatchBelowADInplaceOrView below;
  const Listener listener;
  compute();
}

}  // namespace lra::analysis
