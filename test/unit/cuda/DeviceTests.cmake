# fsdp_add_device_tests(TARGET FOLDER LIBRARY ...): the tests of kernels and products as a program for a GPU.
# FOLDER holds runtime/ and test/. The libraries are fsdp_runtime_cuda, the CPU's kernels and GoogleTest, in
# the order of linking. bench/gpu_check builds the same where a GPU is.
function(fsdp_add_device_tests target folder)
  set(sources unit/emulator/MatmulTest.cpp)
  foreach(kernels Attention Copy Loss Row Update)
    list(APPEND sources unit/cuda/${kernels}KernelsTest.cpp)
  endforeach()
  list(TRANSFORM sources PREPEND ${folder}/test/)
  add_executable(${target} ${sources})
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE -O1 -fexceptions -frtti)
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()
