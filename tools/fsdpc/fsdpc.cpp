//===- fsdpc.cpp - a model in MLIR text, compiled in one step -------------===//

#include "tools/fsdpc/Driver.h"

int main(int argc, char **argv) {
  return fsdpc::Driver("fsdpc", "compiles a model to a sharded training program")
      .runFile(argc, argv);
}
