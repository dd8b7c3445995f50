// The attention problems that every implementation is tested on.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/attention/attention_test_case.h"

namespace lra::kernels {

inline CaseSettings settings_of(int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                                int64_t dim) {
  CaseSettings settings;
  settings.shape = {batch, heads, queries, keys, dim};
  return settings;
}

// Every rule alone and together, around the sizes where tiles, vectors and blocks begin and end.
inline std::vector<CaseSettings> all_cases() {
  std::vector<CaseSettings> cases;
  for (const int64_t dim : {1, 3, 8, 32, 64, 65, 80, 100, 130}) {
    cases.push_back(settings_of(2, 2, 37, 53, dim));
    cases.push_back(settings_of(1, 2, 97, 64, dim));
    cases.back().layout = Layout::kBHLE;
    cases.back().dropout_rate = 0.1;
  }
  for (const int64_t length : {1, 2, 15, 16, 17, 48, 95, 96, 97, 255, 256, 257, 300}) {
    cases.push_back(settings_of(1, 1, length, length, 8));
    cases.push_back(settings_of(2, 1, length, 2 * length + 1, 16));
    cases.back().key_mask = true;
    cases.back().dropout_rate = 0.3;
    cases.push_back(settings_of(2, 1, 2 * length + 1, length, 5));
    cases.back().right = 0;
    cases.back().query_mask = true;
  }
  for (const int64_t length : {1, 17, 97, 300}) {
    cases.push_back(settings_of(2, 2, length, length + 3, 8));
    cases.back().grad_logsumexp = cases.back().key_mask = true;
  }
  for (const auto& [left, right] : {std::pair{0, 0}, {5, 3}, {-1, 0}, {0, -1}, {40, 70}, {3, -1}}) {
    for (const bool masks : {false, true}) {
      CaseSettings settings = settings_of(2, 2, 290, 310, 8);
      settings.left = left;
      settings.right = right;
      settings.key_mask = settings.query_mask = masks;
      settings.dropout_rate = masks ? 0.25 : 0;
      cases.push_back(settings);
    }
  }
  for (const auto& [query_block, key_block] :
       {std::pair{1, 1}, {7, 3}, {50, 50}, {64, 64}, {16, 100}, {128, 20}, {500, 500}}) {
    for (const auto lists_for :
         {BlockListsFor::kAll, BlockListsFor::kEachHead, BlockListsFor::kEachPlane}) {
      const bool rules = lists_for != BlockListsFor::kAll;
      CaseSettings settings = settings_of(2, 2, 190, 210, 12);
      settings.query_block = query_block;
      settings.key_block = key_block;
      settings.block_lists_for = lists_for;
      settings.key_mask = settings.query_mask = rules;
      settings.right = rules ? 30 : -1;
      settings.grad_logsumexp = rules;
      settings.dropout_rate = rules ? 0.2 : 0;
      cases.push_back(settings);
    }
  }
  for (const int64_t length : {1, 2, 15, 17, 48, 49, 97, 300}) {
    for (const bool causal : {false, true}) {
      CaseSettings settings = settings_of(2, 2, length, length, causal ? 8 : 20);
      settings.rounds = causal ? 1 : 3;
      settings.buckets = length < 50 ? 2 : 6;
      settings.chunk = length < 50 ? 4 : 40;
      settings.causal = causal;
      settings.grad_logsumexp = !causal;
      settings.dropout_rate = causal ? 0 : 0.2;
      cases.push_back(settings);
    }
  }
  for (const auto& [queries, keys] : {std::pair{1, 1}, {17, 16}, {97, 257}, {300, 290}}) {
    for (const bool rules : {false, true}) {
      CaseSettings settings = settings_of(3, 2, queries, keys, rules ? 7 : 32);
      settings.bias = true;
      settings.grad_logsumexp = settings.key_mask = settings.query_mask = rules;
      settings.right = rules ? 20 : -1;
      settings.query_block = rules ? 50 : 0;
      settings.key_block = 40;
      settings.dropout_rate = rules ? 0.2 : 0;
      cases.push_back(settings);
    }
  }
  for (const auto& [queries, keys] :
       {std::pair{1, 1}, {17, 16}, {97, 257}, {300, 290}, {200, 31}}) {
    for (const bool laplace : {false, true}) {
      CaseSettings settings = settings_of(3, 2, queries, keys, 20);
      settings.shape.value_dim = laplace ? 37 : 8;
      settings.laplace = laplace;
      cases.push_back(settings);
      settings.bias = settings.relative = true;
      cases.push_back(settings);
      settings.key_mask = settings.query_mask = true;
      settings.right = 20;
      settings.query_block = 50;
      settings.key_block = 40;
      settings.dropout_rate = 0.2;
      settings.grad_logsumexp = !laplace;
      cases.push_back(settings);
    }
  }
  return cases;
}

}  // namespace lra::kernels
