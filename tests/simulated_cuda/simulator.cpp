// Threads of a block as fibers (ucontext) that a scheduler runs in turn, from one barrier to the
// next.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

namespace lra::simulated {

Place place;
dim3 block_size, grid_size;
unsigned char* shared_memory = nullptr;
int most_shared_bytes = 227 << 10;
void (*observe)(void*, dim3, dim3, size_t, Arguments) = nullptr;

namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;

enum class State { kRuns, kAtWarpBarrier, kAtBlockBarrier, kEnded };

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

struct Fiber {
  ucontext_t start;
  jmp_buf at;  // where it waits; unlike a switch of contexts a jump asks the kernel for nothing
  bool is_new = true;
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  State state = State::kEnded;
  Place place;
  std::vector<Copy> copies;  // that are under way
};

struct Block {
  std::vector<Fiber> fibers;  // as many as the largest block so far
  jmp_buf scheduler;
  const std::function<void()>* thread = nullptr;
  unsigned current = 0;
  int count = 0;
  unsigned turn = 0;
  void* met[kMaxThreads];  // what threads gave to meet()
};
Block block;

// Out of the current fiber, to the scheduler.
void wait(State state) {
  Fiber& fiber = block.fibers[block.current];
  fiber.state = state;
  if (_setjmp(fiber.at) == 0) _longjmp(block.scheduler, 1);
}

// One thread after another: where a fiber ends, that of a later block begins.
void body() {
  for (;;) {
    (*block.thread)();
    if (!block.fibers[block.current].copies.empty()) fail("a thread ended before its copies");
    wait(State::kEnded);
  }
}

void resume(unsigned index) {
  Fiber& fiber = block.fibers[index];
  block.current = index;
  place = fiber.place;
  fiber.state = State::kRuns;
  if (_setjmp(block.scheduler) != 0) return;
  if (!fiber.is_new) _longjmp(fiber.at, 1);
  fiber.is_new = false;
  setcontext(&fiber.start);
}

// Runs a warp until all of its threads have ended or wait for the block.
void run_warp(unsigned first, unsigned end) {
  for (;;) {
    unsigned at_warp = 0, at_block = 0, ended = 0;
    for (unsigned n = first; n < end; ++n) {
      if (block.fibers[n].state != State::kEnded) resume(n);
      at_warp += block.fibers[n].state == State::kAtWarpBarrier;
      at_block += block.fibers[n].state == State::kAtBlockBarrier;
      ended += block.fibers[n].state == State::kEnded;
    }
    if (at_warp == 0 && (at_block == 0 || ended == 0)) return;
    if (at_warp != end - first) fail("threads of a warp are at different barriers");
  }
}

void start(unsigned count, dim3 index) {
  if (block.fibers.size() < count) block.fibers.resize(count);
  for (unsigned n = 0; n < count; ++n) {
    Fiber& fiber = block.fibers[n];
    fiber.place.thread = {n % block_size.x, n / block_size.x % block_size.y,
                          n / (block_size.x * block_size.y)};
    fiber.place.block = index;
    fiber.state = State::kRuns;
    if (!fiber.is_new) continue;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, body, 0);
  }
}

void run_block(unsigned count, dim3 index) {
  start(count, index);
  for (;;) {
    unsigned at_barrier = 0, ended = 0;
    // Another order each time: a barrier that is missing shows sooner.
    const unsigned warps = count / kWarp, shift = block.turn++ * 7;
    for (unsigned n = 0; n < warps; ++n) {
      const unsigned warp = (block.turn % 2 == 0 ? n + shift : warps - 1 - n + shift) % warps;
      run_warp(warp * kWarp, (warp + 1) * kWarp);
    }
    for (unsigned n = 0; n < count; ++n) {
      at_barrier += block.fibers[n].state == State::kAtBlockBarrier;
      ended += block.fibers[n].state == State::kEnded;
    }
    if (ended == count) return;
    if (at_barrier != count) fail("a thread ended while others wait for it");
  }
}

}  // namespace

void fail(const char* what) {
  std::cerr << "simulated CUDA: " << what << '\n';
  std::abort();
}

void run(dim3 grid, dim3 size, size_t shared_bytes, const std::function<void()>& thread) {
  const unsigned count = size.x * size.y * size.z;
  if (count == 0 || count > kMaxThreads || count % kWarp != 0) fail("a block of part of a warp");
  std::vector<unsigned char> memory(shared_bytes + 16);
  block_size = size;
  grid_size = grid;
  block.thread = &thread;
  auto* begin = reinterpret_cast<void*>(memory.data());
  size_t space = memory.size();
  shared_memory = static_cast<unsigned char*>(std::align(16, shared_bytes, begin, space));
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        std::fill(memory.begin(), memory.end(), 0xFF);
        run_block(count, {x, y, z});
      }
    }
  }
}

void warp_barrier() { wait(State::kAtWarpBarrier); }

void block_barrier() { wait(State::kAtBlockBarrier); }

// The first lane to go on acts for all, before any other does.
void meet(void* mine, void (*together)(void* const* all)) {
  const unsigned first = block.current / kWarp * kWarp;
  block.met[block.current] = mine;
  warp_barrier();
  if (block.current == first) together(&block.met[first]);
}

int block_count(bool value) {
  block_barrier();
  block.count = 0;
  block_barrier();
  block.count += value;
  block_barrier();
  return block.count;
}

void copy_later(void* to, const void* from, size_t bytes) {
  block.fibers[block.current].copies.push_back({to, from, bytes});
}

void copy_now() {
  for (const Copy& copy : block.fibers[block.current].copies) {
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, copy.bytes);
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }
  block.fibers[block.current].copies.clear();
}

}  // namespace lra::simulated
