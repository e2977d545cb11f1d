//===- ElementTypes.h - the element types of kernels ------------*- C++ -*-===//
//
// The words of the column `types` of runtime/program/Kernels.def: the template parameters of the
// CPU's function, and the instances that CUDA's function has.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_ELEMENTTYPES_H
#define FSDP_RUNTIME_KERNELS_ELEMENTTYPES_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/ShardLayout.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <cstddef>
#include <cstdint>

#define FSDP_TEMPLATE_fixed
#define FSDP_TEMPLATE_T template <class T>
#define FSDP_TEMPLATE_any template <class T>
#define FSDP_TEMPLATE_Id template <class Id>
#define FSDP_TEMPLATE_T_Id template <class T, class Id>
#define FSDP_TEMPLATE_T_Sum_Id template <class T, class Sum, class Id>
#define FSDP_TEMPLATE_N_T template <std::size_t N, class T>

/// Names a template whose parameters are all that a row may depend on.
#define FSDP_TEMPLATE_ALL template <class T, class Id, class Sum, std::size_t N>

// INSTANCE(name, function, T, Id, Sum) for each; none of kernels that are templates on CUDA too.
#define FSDP_INSTANCES_any(INSTANCE, name, function)
#define FSDP_INSTANCES_N_T(INSTANCE, name, function)
#define FSDP_INSTANCES_fixed(INSTANCE, name, function)                                             \
  INSTANCE(name, function, float, std::int32_t, float)
#define FSDP_INSTANCES_T(INSTANCE, name, function)                                                 \
  INSTANCE(name, function, float, std::int32_t, float)                                             \
  INSTANCE(name, function, bf16, std::int32_t, float)
#define FSDP_INSTANCES_Id(INSTANCE, name, function)                                                \
  INSTANCE(name, function, float, std::int32_t, float)                                             \
  INSTANCE(name, function, float, std::int64_t, float)
#define FSDP_INSTANCES_T_Id(INSTANCE, name, function)                                              \
  FSDP_INSTANCES_Id(INSTANCE, name, function) INSTANCE(name, function, bf16, std::int32_t, float)  \
      INSTANCE(name, function, bf16, std::int64_t, float)
#define FSDP_INSTANCES_T_Sum_Id(INSTANCE, name, function)                                          \
  FSDP_INSTANCES_T_Id(INSTANCE, name, function) INSTANCE(name, function, bf16, std::int32_t, bf16) \
      INSTANCE(name, function, bf16, std::int64_t, bf16)

#endif // FSDP_RUNTIME_KERNELS_ELEMENTTYPES_H
