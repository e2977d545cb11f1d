//===- dnnl.hpp - what the CPU's kernels ask of oneDNN, where there is none ----===//
//
// On the include path of the reference kernels of DeviceTests.cmake alone: they then use no
// instructions that oneDNN would have to find on the processor.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_CUDA_WITHOUT_ONEDNN_DNNL_HPP
#define FSDP_TEST_UNIT_CUDA_WITHOUT_ONEDNN_DNNL_HPP

namespace dnnl {

enum class cpu_isa : unsigned { isa_default = 0, avx512_core_bf16 = 0x1, avx512_core_amx = 0x3 };
inline cpu_isa get_effective_cpu_isa() { return cpu_isa::isa_default; }

} // namespace dnnl

#endif // FSDP_TEST_UNIT_CUDA_WITHOUT_ONEDNN_DNNL_HPP
