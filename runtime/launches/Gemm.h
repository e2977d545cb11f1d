//===- Gemm.h - launches of kernels/Gemm.h -------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_GEMM_H
#define FSDP_RUNTIME_LAUNCHES_GEMM_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Gemm.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fsdp::rt {

/// Enqueues a product of matrices of float, or of bf16 to bf16 or float. With beta = 1, `out` is
/// read as well.
template <class In, class Out>
void gemm(Context &c, int stream, const char *name, const Gemm &product, ArenaSpan<In> a,
          ArenaSpan<In> b, ArenaSpan<Out> out) {
  const Work work = gemmWork(product);
  if (product.beta == 0)
    launch(
        c, stream, name, reads(a, b), writes(out),
        [product](const In *a, const In *b, Out *out) { kernels::gemm(product, a, b, out); }, work);
  else
    launch(
        c, stream, name, reads(a, b, out), writes(out),
        [product](const In *a, const In *b, const Out *, Out *out) {
          kernels::gemm(product, a, b, out);
        },
        work);
}

namespace detail {
template <class GoOn> void goOnRows(void *self, std::int64_t begin, std::int64_t end) {
  (*static_cast<GoOn *>(self))(begin, end, {});
}
template <class GoOn> void goOnColumns(void *self, std::int64_t rows, ColumnPart columns) {
  (*static_cast<GoOn *>(self))(0, rows, columns);
}
} // namespace detail

/// Enqueues a product, the first two slices that are read by one another into the first that is
/// written, and, while its rows are in the cache,
/// `kernel(begin, end, const R *..., const Out *product, Out *, W *...)` for rows [begin, end): for
/// each row once, in any order and by several threads. Where the product is RowSums, it is
/// `kernel(begin, end, ColumnPart, ...)`, called for each part of the columns with the first rows
/// first. The kernel may write over the product.
template <class Product, class In, class... R, class Out, class... W, class Kernel>
void gemm(Context &c, int stream, const char *name, const Product &product,
          Reads<In, In, R...> read, Writes<Out, W...> written, Kernel kernel) {
  launch(
      c, stream, name, read, written,
      [product, kernel](const In *a, const In *b, const R *...r, Out *out, W *...w) {
        constexpr bool addsUp = std::is_same_v<Product, RowSums>;
        auto goOn = [&](std::int64_t begin, std::int64_t end, ColumnPart columns) {
          if constexpr (addsUp)
            kernel(begin, end, columns, r..., static_cast<const Out *>(out), out, w...);
          else
            kernel(begin, end, r..., static_cast<const Out *>(out), out, w...);
        };
        EpilogueCallback done;
        done.self = &goOn;
        done.call = detail::goOnRows<decltype(goOn)>;
        if constexpr (addsUp)
          done.callColumns = detail::goOnColumns<decltype(goOn)>;
        kernels::gemm(product, a, b, out, done);
      },
      gemmWork(product));
}

/// Enqueues `kernel(const In *operand, Sum *)`, which adds up the rows of an operand of the product
/// into the second slice that is written, and then the product into the first.
template <class In, class Out, class Sum, class Kernel>
void gemm(Context &c, int stream, const char *name, const OperandSum &product, Reads<In, In> read,
          Writes<Out, Sum> written, Kernel kernel) {
  launch(
      c, stream, name, read, written,
      [product, kernel](const In *a, const In *b, Out *out, Sum *sum) {
        kernel(product.ofRight ? b : a, sum);
        kernels::gemm(product, a, b, out);
      },
      gemmWork(product));
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_GEMM_H
