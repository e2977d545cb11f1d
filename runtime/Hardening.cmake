# Flags that detect memory errors, or end a program before they can be exploited; for the compiler,
# the runtime and generated programs. Sets
#   FSDP_HARDENING_FLAGS       of the compiler: what has arrays checks its frame, calls with buffers of known sizes are checked
#   FSDP_HARDENING_LINK_FLAGS  of the linker: relocations are resolved at start and read-only then
# Programs are position independent besides: CMAKE_POSITION_INDEPENDENT_CODE, or FSDP_PIE_FLAGS and -pie.
set(FSDP_HARDENING_FLAGS -fstack-protector-strong)
set(FSDP_HARDENING_LINK_FLAGS -Wl,-z,relro,-z,now)
set(FSDP_PIE_FLAGS -fPIE)
# A sanitizer intercepts the same calls, and would miss those that are redirected to checked ones.
if(NOT FSDP_SANITIZER_FLAGS)
  include(CheckCXXSourceCompiles)
  # Level 3 also uses the sizes of calls of malloc.
  check_cxx_source_compiles("#if !defined(__has_builtin)\n#error\n#elif !__has_builtin(__builtin_dynamic_object_size)\n#error\n#endif\nint main() {}"
                            FSDP_HAS_DYNAMIC_OBJECT_SIZE)
  if(FSDP_HAS_DYNAMIC_OBJECT_SIZE)
    list(APPEND FSDP_HARDENING_FLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  else()
    list(APPEND FSDP_HARDENING_FLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()
