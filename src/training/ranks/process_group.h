// Ranks over LibTorch's c10d: a key-value store where they meet, and Gloo between them. Gloo adds
// up in main memory; tensors of a GPU can stay there (nccl.h).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <memory>

#include "base/launch_environment.h"
#include "training/ranks/ranks.h"

namespace lra::training {

// Opens a backend that sums tensors of a device in place. `timeout`: its longest wait for a sum.
using OpenBackend = std::function<c10::intrusive_ptr<c10d::Backend>(
    const c10::intrusive_ptr<c10d::Store>& store, const Launch& launch,
    std::chrono::milliseconds timeout)>;

// Waits until all ranks of `launch` are there; with one rank nothing is opened. `timeout`: the
// longest wait for a rank that does not come, later for one that does not answer. Throws lra::Error
// (74) with the missing ranks or the reason why the rendezvous cannot be used, and with exit code 3
// if a stop was requested meanwhile. `for_devices`: for tensors that are not on the CPU; without it
// they are copied to main memory and back.
std::unique_ptr<Ranks> join_ranks(const Launch& launch, std::chrono::milliseconds timeout,
                                  const OpenBackend& for_devices = {});

// The same if the ranks already have a store.
std::unique_ptr<Ranks> join_ranks_at(c10::intrusive_ptr<c10d::Store> store, const Launch& launch,
                                     std::chrono::milliseconds timeout,
                                     const OpenBackend& for_devices = {});

}  // namespace lra::training
