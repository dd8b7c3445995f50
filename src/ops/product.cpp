#include "ops/product.h"

#include "base/parallel.h"
#include "kernels/choice.h"
#include "kernels/gemm/outer_products.h"
#include "kernels/pointwise/column_sums.h"
#include "ops/dispatch.h"
#include "ops/one_blas_thread.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

// Parts that a product is cut into where it is large enough: several for each thread of a large
// machine.
constexpr int64_t kParts = 32;
constexpr int64_t kPartRows = 32;          // of a part of the library's, more where kParts say
constexpr int64_t kDeepPartRows = 512;     // the same where packing b for each part costs much
constexpr int64_t kLeastDepth = 1024;      // of a part of a sum over rows
constexpr int64_t kOuterRowsMultiple = 8;  // of the register blocks of AVX-512
constexpr int64_t kOuterColumnsMultiple = 48;

int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// The length of a part when `size` is cut evenly into `parts`, a multiple of `multiple`.
int64_t even_part(int64_t size, int64_t parts, int64_t multiple) {
  return parts_of(parts_of(size, parts), multiple) * multiple;
}

// Offset of matrix `index` of [..., M, N].
int64_t offset_of(const Tensor& t, int64_t index) {
  int64_t offset = 0;
  for (int64_t axis = t.dim() - 3; axis >= 0; --axis) {
    offset += index % t.size(axis) * t.stride(axis);
    index /= t.size(axis);
  }
  return offset;
}

// A^T B for matrices a [..., rows, M] and b [..., rows, N] whose columns are neighbors.
class OuterProducts {
 public:
  OuterProducts(const Tensor& a, const Tensor& b)
      : a_(a), b_(b), rows_(a.size(-2)), m_(a.size(-1)), n_(b.size(-1)) {
    items_ = m_ * rows_ > 0 ? a.numel() / (m_ * rows_) : 0;
    m_part_ = even_part(m_, parts_of(m_, kernels::kOuterRows), kOuterRowsMultiple);
    n_part_ = even_part(n_, parts_of(n_, kernels::kOuterColumns), kOuterColumnsMultiple);
    blocks_ = parts_of(m_, m_part_) * parts_of(n_, n_part_);
    const int64_t wanted = kParts / std::max<int64_t>(1, items_ * blocks_);
    const int64_t runs = std::clamp<int64_t>(rows_ / kLeastDepth, 1, std::max<int64_t>(1, wanted));
    rows_part_ = std::max(kernels::kOuterRun, even_part(rows_, runs, kernels::kOuterRun));
    runs_ = std::max<int64_t>(1, parts_of(rows_, rows_part_));
  }

  // [..., M, N] in the type that sums are held in. Of matrices in bfloat16 on tiles, sums [M] are
  // those of the rows of a, unless the pointer is null.
  Tensor sum(Tensor* sums = nullptr) const {
    auto shape = a_.sizes().vec();
    shape.end()[-2] = m_;
    shape.end()[-1] = n_;
    const auto options = a_.options().dtype(wide_type(a_));
    if (a_.numel() == 0 || b_.numel() == 0) return at::zeros(shape, options);
    const Tensor parts = at::empty({runs_, items_ * m_ * n_}, options);
    const Tensor parts_of_rows = sums == nullptr ? Tensor() : at::empty({runs_, m_}, options);
    parallel_for_each(runs_ * items_ * blocks_,
                      [&](int64_t index) { part(index, parts, parts_of_rows); });
    const auto whole = [&](const Tensor& t) { return runs_ == 1 ? t : sum_of_rows(t); };
    if (sums != nullptr) *sums = whole(parts_of_rows).view({m_});
    return whole(parts).view(shape);
  }

 private:
  void part(int64_t index, const Tensor& parts, const Tensor& parts_of_rows) const {
    const int64_t block = index % blocks_, item = index / blocks_ % items_;
    const int64_t run = index / (blocks_ * items_), n_parts = parts_of(n_, n_part_);
    const int64_t i = block / n_parts * m_part_, j = block % n_parts * n_part_;
    const int64_t first = run * rows_part_, count = std::min(rows_part_, rows_ - first);
    with_float_type(a_, "lra::product", [&]<typename T>(T) {
      const auto columns = [&](const Tensor& t, int64_t column, int64_t size) {
        return kernels::MatrixColumns<T>{
            const_data<T>(t) + offset_of(t, item) + first * t.stride(-2) + column, t.stride(-2),
            size};
      };
      const auto a = columns(a_, i, std::min(m_part_, m_ - i));
      const auto b = columns(b_, j, std::min(n_part_, n_ - j));
      auto* c =
          mutable_data<kernels::Wide<T>>(parts) + (run * items_ + item) * m_ * n_ + i * n_ + j;
      if constexpr (std::is_same_v<T, kernels::Bf16>) {
        if (parts_of_rows.defined() && j == 0) {
          float* sums = parts_of_rows.mutable_data_ptr<float>() + run * m_ + i;
          return kernels::sum_outer_products_and_rows(count, a, b, c, n_, sums);
        }
      }
      kernels::sum_outer_products<T>(count, a, b, c, n_);
    });
  }

  const Tensor &a_, &b_;
  int64_t rows_, m_, n_, items_, m_part_, n_part_, blocks_, rows_part_, runs_;
};

bool has_neighbouring_columns(const Tensor& t) { return t.size(-1) == 1 || t.stride(-1) == 1; }

// True if our kernel computes the product. Its reference, textbook loops, is 50 times slower than
// the library.
bool use_outer_products(const Tensor& a_rows, const Tensor& b) {
  using kernels::Op;
  const bool is_bf16 = a_rows.scalar_type() == at::kBFloat16;
  if (!is_bf16 && a_rows.scalar_type() != at::kFloat) return false;
  return has_neighbouring_columns(a_rows) && has_neighbouring_columns(b) &&
         kernels::choose(is_bf16 ? Op::kOuterProductsBf16 : Op::kOuterProducts) !=
             kernels::Isa::kRef;
}

// The library's products of one thread each, on whole matrices or on runs of rows. A bias [N] may
// be undefined.
Tensor library_product(const Tensor& a, const Tensor& b, int64_t part_rows = kPartRows,
                       const Tensor& bias = {}) {
  auto shape = a.sizes().vec();
  shape.back() = b.size(-1);
  const int64_t rows = a.size(-2);
  Tensor out = at::empty(shape, a.options());
  if (out.numel() == 0) return out;
  const int64_t items = out.numel() / (rows * shape.back());
  const int64_t wanted = std::clamp<int64_t>(kParts / items, 1, parts_of(rows, part_rows));
  const int64_t part = even_part(rows, wanted, 1), parts = parts_of(rows, part);
  const bool widens = has_slow_products(a);
  const Tensor wide_b = widens ? b.to(at::kFloat) : b;
  const auto matrix = [](const Tensor& t, int64_t item) {
    return t.as_strided({t.size(-2), t.size(-1)}, {t.stride(-2), t.stride(-1)},
                        t.storage_offset() + offset_of(t, item));
  };
  // A single part would not be in a parallel region, and oneDNN would take all threads for it.
  parallel_for_each(std::max<int64_t>(2, items * parts), [&](int64_t index) {
    if (index >= items * parts) return;
    const at::AutoDispatchBelowADInplaceOrView guard;
    const OneBlasThread one_thread;
    const int64_t item = index / parts, first = index % parts * part;
    const int64_t count = std::min(part, rows - first);
    Tensor to = matrix(out, item).narrow(0, first, count);
    const Tensor a_part = matrix(a, item).narrow(0, first, count);
    if (widens) {
      to.copy_(at::mm(a_part.to(at::kFloat), matrix(wide_b, item)));
    } else if (bias.defined()) {
      at::addmm_out(to, bias, a_part, matrix(b, item));
    } else {
      at::mm_out(to, a_part, matrix(b, item));
    }
  });
  return out;
}

Tensor product_impl(const Tensor& a, const Tensor& b) {
  LRA_CHECK_EQ(a.dim(), b.dim());
  LRA_CHECK_GE(a.dim(), 2);
  LRA_CHECK_EQ(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  LRA_CHECK_EQ(a.size(-1), b.size(-2));
  LRA_CHECK(a.scalar_type() == b.scalar_type());
  const Tensor a_rows = a.transpose(-2, -1);
  if (use_outer_products(a_rows, b)) return OuterProducts(a_rows, b).sum().to(a.scalar_type());
  return library_product(a, b);
}

Tensor sum_of_outer_products_impl(const Tensor& a, const Tensor& b) {
  LRA_CHECK(a.dim() == 2 && b.dim() == 2 && a.scalar_type() == b.scalar_type());
  LRA_CHECK_EQ(a.size(0), b.size(0));
  if (use_outer_products(a, b)) return OuterProducts(a, b).sum();
  // The library's product is taken in runs as well: one of few columns could not be cut otherwise.
  const int64_t runs = std::clamp<int64_t>(a.size(0) / kLeastDepth, 1, kParts);
  const int64_t part = std::max<int64_t>(1, a.size(0) / runs);
  const int64_t rest = a.size(0) - runs * part;
  const auto in_runs = [&](const Tensor& t) {
    return t.narrow(0, 0, runs * part).unflatten(0, {runs, part});
  };
  const Tensor parts = library_product(in_runs(a).transpose(1, 2), in_runs(b)).to(wide_type(a));
  Tensor sum = sum_of_rows(parts.flatten(1)).view({a.size(1), b.size(1)});
  if (rest == 0) return sum;
  return sum.add_(
      library_product(a.narrow(0, runs * part, rest).t(), b.narrow(0, runs * part, rest)));
}

std::tuple<Tensor, Tensor> both_sums_impl(const Tensor& a, const Tensor& b) {
  LRA_CHECK(a.dim() == 2 && b.dim() == 2 && a.scalar_type() == b.scalar_type());
  LRA_CHECK_EQ(a.size(0), b.size(0));
  const bool on_tiles = a.scalar_type() == at::kBFloat16 && kernels::has_tiles() && a.numel() > 0 &&
                        b.numel() > 0 && use_outer_products(a, b);
  if (!on_tiles) return {sum_of_outer_products(a, b), sum_of_rows(a)};
  Tensor rows;
  Tensor products = OuterProducts(a, b).sum(&rows);
  return {products, rows};
}

Tensor sum_of_rows_impl(const Tensor& x) {
  if (x.scalar_type() == at::kDouble) return x.sum(0);
  const Tensor rows = x.contiguous();
  Tensor sums = at::empty({rows.size(1)}, rows.options().dtype(at::kFloat));
  with_float_type(rows, "sum of rows", [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) {
      kernels::column_sums(rows.size(0), rows.size(1), const_data<T>(rows),
                           sums.mutable_data_ptr<float>());
    }
  });
  return sums;
}

struct ProductFunction : torch::autograd::Function<ProductFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({a, b});
    return product(a, b);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &a = saved[0], &b = saved[1], &grad = grads[0];
    Tensor grad_a, grad_b;
    if (ctx->needs_input_grad(0)) grad_a = product(grad, b.transpose(-2, -1));
    if (ctx->needs_input_grad(1)) grad_b = product(a.transpose(-2, -1), grad);
    return {grad_a, grad_b};
  }
};

}  // namespace

Tensor product(const Tensor& a, const Tensor& b) {
  return dispatch<"lra::product", product_impl>(a, b);
}

Tensor deep_product(const Tensor& a, const Tensor& b, const Tensor& bias) {
  LRA_CHECK(a.dim() == 2 && b.dim() == 2 && a.scalar_type() == at::kFloat);
  return library_product(a, b, kDeepPartRows, bias);
}

Tensor sum_of_outer_products(const Tensor& a, const Tensor& b) {
  return dispatch<"lra::sum_of_outer_products", sum_of_outer_products_impl>(a, b);
}

SumsOverRows sum_of_outer_products_and_rows(const Tensor& a, const Tensor& b) {
  auto [products, rows] = dispatch<"lra::sum_of_outer_products_and_rows", both_sums_impl>(a, b);
  return {products, rows};
}

Tensor sum_of_rows(const Tensor& x) { return dispatch<"lra::sum_of_rows", sum_of_rows_impl>(x); }

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("product(Tensor a, Tensor b) -> Tensor");
  m.def("sum_of_outer_products(Tensor a, Tensor b) -> Tensor");
  m.def("sum_of_outer_products_and_rows(Tensor a, Tensor b) -> (Tensor, Tensor)");
  m.def("sum_of_rows(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("product", product_impl);
  m.impl("sum_of_outer_products", sum_of_outer_products_impl);
  m.impl("sum_of_outer_products_and_rows", both_sums_impl);
  m.impl("sum_of_rows", sum_of_rows_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) { m.impl("product", applies<ProductFunction>(product_impl)); }

}  // namespace lra::ops
