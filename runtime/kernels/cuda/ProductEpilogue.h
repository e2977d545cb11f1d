//===- ProductEpilogue.h - loops that cuBLASLt computes with a product -------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_PRODUCTEPILOGUE_H
#define FSDP_RUNTIME_KERNELS_CUDA_PRODUCTEPILOGUE_H

namespace fsdp::rt {

/// The function that is computed of sum = product + bias + residual, or for `geluGradient` of the
/// product: the GELU, or the product times the derivative of GELU at `argument`.
enum class ProductFunction { none, gelu, geluGradient };

/// The loops behind a product. cuBLASLt computes them with the product where it has an algorithm
/// for both, and `rest`, if any, computes the remaining ones from the result; otherwise `loops`
/// computes all. These are emitted functions of the same operands, which enqueue kernels. Operands
/// besides the product are numbered; -1: none. With `gelu` and two results the first is the sum.
template <class Loops, class Rest = Loops> struct ProductEpilogue {
  int bias, residual;
  ProductFunction function;
  int argument;
  Loops *loops;
  Rest *rest;

  constexpr ProductEpilogue(int bias, int residual, ProductFunction function, int argument,
                            Loops &loops, Rest *rest = nullptr)
      : bias(bias), residual(residual), function(function), argument(argument), loops(&loops),
        rest(rest) {}
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_PRODUCTEPILOGUE_H
