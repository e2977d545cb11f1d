# Finds the libraries that tokenizers need: FSDP_TOKENIZER_LIBRARIES, _INCLUDE_DIRS and _DEFINITIONS. Included by this folder's
# CMakeLists.txt and by that of the runtime, which compiles these sources for programs.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
# The archives: an installed tool and a generated program need neither library beside them.
find_library(PCRE2_LIBRARY NAMES libpcre2-8.a pcre2-8)
find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a utf8proc)
if(NOT PCRE2_INCLUDE_DIR OR NOT PCRE2_LIBRARY OR NOT UTF8PROC_INCLUDE_DIR OR NOT UTF8PROC_LIBRARY)
  message(FATAL_ERROR "PCRE2 and utf8proc are needed for tokenizers: install libpcre2-dev and libutf8proc-dev, or set "
                      "PCRE2_INCLUDE_DIR, PCRE2_LIBRARY, UTF8PROC_INCLUDE_DIR and UTF8PROC_LIBRARY")
endif()
set(FSDP_TOKENIZER_LIBRARIES ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY})
set(FSDP_TOKENIZER_INCLUDE_DIRS ${PCRE2_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
set(FSDP_TOKENIZER_DEFINITIONS PCRE2_STATIC UTF8PROC_STATIC)
