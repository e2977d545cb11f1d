# Builds the runtime in SOURCES for SWITCHES of the processor in the folder BUILD, and writes to the
# folder TO the files that programs link, and a toolchain.json with paths in which "@" denotes TO.
# usage: Runtimes.cmake
function(require_success status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the runtime library for ${SWITCHES} was not built")
  endif()
endfunction()
# Lists in quotes stay one word.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCES} -B ${BUILD} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release -DFSDP_TARGETS=cpu
                        -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DFSDP_ARCH_FLAGS=${SWITCHES}"
                        "-DFSDP_VERSION=${VERSION}" OUTPUT_QUIET RESULT_VARIABLE status)
require_success(${status})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} OUTPUT_QUIET RESULT_VARIABLE status)
require_success(${status})
file(READ ${BUILD}/toolchain.json toolchain)
file(REMOVE_RECURSE ${TO})
string(REGEX MATCHALL "\"${BUILD}/[^\"]*\"" paths "${toolchain}")
foreach(path ${paths})
  string(REPLACE "\"" "" path ${path})
  file(COPY ${path} DESTINATION ${TO})
  get_filename_component(name ${path} NAME)
  string(REPLACE "\"${path}\"" "\"@/${name}\"" toolchain "${toolchain}")
endforeach()
file(WRITE ${TO}/toolchain.json "${toolchain}")
