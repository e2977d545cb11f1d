# fsdp_embed_texts(OUTPUT FILE...): OUTPUT, in the build folder of the caller, has a row `{"name", R"text(...)text"},` for
# each file: its name without the extension, and its text.
function(fsdp_embed_texts output)
  set(rows "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(APPEND rows "{\"${name}\", R\"text(${text})text\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output} CONTENT "${rows}" @ONLY)
endfunction()
