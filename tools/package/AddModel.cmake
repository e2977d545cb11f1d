# fsdpc_add_model(NAME SOURCE...): a program NAME that compiles the model which SOURCE describes. It
# accepts the model's options and fsdpc's (`NAME --help`).
function(fsdpc_add_model name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE fsdpc::driver)
  target_compile_features(${name} PRIVATE cxx_std_17)
  # The compiler's library is found in the build tree and once installed. With a RUNPATH for each, CMake would pad that of the build
  # tree with colons, and the loader treats an empty element as the current folder.
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

# fsdpc_add_program(NAME MODEL OPTION...): the training program NAME that MODEL, made by fsdpc_add_model, compiles with
# these options: fsdpc_add_program(train vit --batch=64 --mesh=fsdp=2).
function(fsdpc_add_program name model)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${program} COMMAND ${model} ${ARGN} -o ${program} DEPENDS ${model} VERBATIM
                     USES_TERMINAL # shows the progress of building the runtime library
                     COMMENT "Compiling the model ${model} to the program ${name}")
  # Not named like the file: make would report a cycle.
  add_custom_target(${name}-program ALL DEPENDS ${program})
endfunction()
