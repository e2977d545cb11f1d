//===- Runtime.h - what a generated program includes -----------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "runtime/Collectives.h"
#include "runtime/Context.h"
#include "runtime/Launch.h"
#include "runtime/Slice.h"

#endif // FSDP_RUNTIME_RUNTIME_H
